#ifndef COCONET_JIT_COMPILE_DISASSEMBLER_H_
#define COCONET_JIT_COMPILE_DISASSEMBLER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// The SASS of a cubin, by nvdisasm or cuobjdump: on PATH, under CUDA_HOME, or where the build
/// found the toolkit. NotFound if there is neither.
absl::StatusOr<std::string> Disassemble(absl::string_view cubin);

}  // namespace coconet

#endif  // COCONET_JIT_COMPILE_DISASSEMBLER_H_
