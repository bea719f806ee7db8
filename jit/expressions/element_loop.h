#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "jit/expressions/kernel_context.h"
#include "jit/expressions/phase_text.h"

namespace coconet {

/// How many packs a thread begins before it finishes the first, if each loads `bytes` bytes per
/// element: at most Config::unroll. Adds a thread's bytes in flight to the kernel's.
int PacksInFlight(KernelContext& k, int64_t bytes);

/// The loop over the elements of `range` ("BEGIN, END"), in packs if `packs_fit` holds.
std::string ElementLoopText(KernelContext& k, absl::string_view range, absl::string_view packs_fit,
                            const PassText& pass);

/// The body of such a loop, from its bracket on: issues the loads of V elements from index i on,
/// and returns what computes and stores.
std::string ElementBodyText(const PassText& pass);

/// The begin and the ahead of an Epilogue of the dialect (jit/device/tiles.h): `place` declares
/// what `placed` names, among it `i`, the index of the element, and `c`, whose shift is that of its
/// storage; `pass` takes the element as `made`.
std::string EpilogueBodyText(absl::string_view place, absl::string_view placed,
                             const PassText& pass);

}  // namespace coconet
