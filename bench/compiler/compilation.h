#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/harness/row.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {

/// Times how long NVRTC takes, on one thread, for the kernel of a whole step: the longest source
/// among the workload's schedules that are one kernel (mixed precision, the first preset's sizes, 8
/// ranks). Each of `rounds` compiles is a miss in a new binary cache, after an untimed one, and
/// includes the write to the cache. Fields: "case", "dtype", "arch", "ranks", "characters" (of the
/// source), "nvrtc", "ours_us", "ours_low_us", "ours_high_us", "spread", "rounds". NotFound where
/// no schedule is one kernel; Unavailable without NVRTC.
absl::StatusOr<Row> MeasureCompilation(const WorkloadInfo& workload, absl::string_view arch,
                                       int rounds);

/// Compiles `kernels` different kernels of Adam's schedules by `threads` threads, and by one in the
/// same rounds. Fields: as above, with "threads", "kernels", "baseline_us" (one thread), "ratio"
/// (the speedup) and "of_limit" (the speedup per thread).
absl::StatusOr<Row> MeasureParallelCompilation(absl::string_view arch, int kernels, int threads,
                                               int rounds);

}  // namespace coconet::bench
