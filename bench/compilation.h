#ifndef COCONET_BENCH_COMPILATION_H_
#define COCONET_BENCH_COMPILATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/row.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {

/// Compiles by NVRTC, one thread, the kernel of a whole step: of the schedules of a workload (mixed
/// precision, first preset's sizes, 8 ranks) that are one kernel, the longest text. Each of
/// `rounds` compiles is a miss in a binary cache of its own, after one that does not count, and
/// includes writing it there. The row's fields: "case", "dtype", "arch", "ranks", "characters" (of
/// the kernel's text), "nvrtc", the time as "ours_us", "ours_low_us", "ours_high_us", "spread",
/// "rounds". NotFound where no schedule is one kernel; Unavailable without NVRTC.
absl::StatusOr<Row> MeasureCompilation(const WorkloadInfo& workload, absl::string_view arch,
                                       int rounds);

/// Compiles `kernels` different kernels of Adam's schedules by `threads` threads, and by one in the
/// same rounds. Fields: as above, with "threads", "kernels", "baseline_us" (one thread), "ratio"
/// (how many times as fast) and "of_limit" (that, over the threads).
absl::StatusOr<Row> MeasureParallelCompilation(absl::string_view arch, int kernels, int threads,
                                               int rounds);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_COMPILATION_H_
