#pragma once

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "runtime/plan.h"
#include "runtime/rank.h"

namespace coconet {

/// NVTX's functions that mark ranges of a thread, by which Nsight names what a GPU does. Both
/// return the depth of nesting, or a negative number without a tool.
struct NvtxApi {
  int (*push)(const char* name) = nullptr;
  int (*pop)() = nullptr;
};

/// The functions of the first of the shared objects that has them; null if none does. They stay
/// open.
const NvtxApi* OpenNvtx(absl::Span<const std::string> files);

/// The installed NVTX library if a profiler is attached (NVTX_INJECTION64_PATH) or steps are traced
/// (COCONET_TRACE); null otherwise, or if no library is found. Thread-safe.
const NvtxApi* NvtxInUse();

/// "coconet: AR; fuse(C)", from the labels of the plan's steps, at most 100 characters.
std::string RangeName(const Plan& plan);

/// Returns `bound`, each run of which, also in a stream of the caller's, is marked by a range of
/// that name; unchanged if `api` is null.
std::unique_ptr<BoundPlan> InRanges(const NvtxApi* api, std::string name,
                                    std::unique_ptr<BoundPlan> bound);

}  // namespace coconet
