#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "runtime/cuda/cuda_rank.h"

namespace coconet::bench {

/// What a dispatch costs the host on `ranks` ranks, threads of this process: of a program of one
/// kernel by Run, in a stream of the caller's, in the rank's own, and each of these as a graph; a
/// row for each way. Beside it, in turns, the driver alone makes the same calls with the same
/// arguments. "calls" are what one dispatch calls, "ours_us" and "floor_us" medians of a dispatch
/// on the slowest rank. Internal unless every dispatch of both sides has done its step.
absl::StatusOr<std::vector<Row>> MeasureGpuDispatch(const CudaLibraries& libraries, int ranks,
                                                    const RoundTerms& terms);

/// A benchmark's run: the rows of the flag --ranks. `judged`: with bars, at 1 rank.
absl::Status RunGpuDispatch(const CudaLibraries& libraries, bool judged);

}  // namespace coconet::bench
