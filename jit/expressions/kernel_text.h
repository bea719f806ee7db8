#ifndef COCONET_JIT_EXPRESSIONS_KERNEL_TEXT_H_
#define COCONET_JIT_EXPRESSIONS_KERNEL_TEXT_H_

#include <cstdint>
#include <string>

#include "jit/expressions/kernel_place.h"
#include "jit/storage/arguments.h"

namespace coconet {

/// The kernel of this body, for so many ranks of a node and packs of `vec` elements.
EmittedKernel KernelOf(int ranks, int vec, const Arguments& args, const std::string& body,
                       int64_t bytes);

}  // namespace coconet

#endif  // COCONET_JIT_EXPRESSIONS_KERNEL_TEXT_H_
