#ifndef COCONET_BENCH_DERIVATION_H_
#define COCONET_BENCH_DERIVATION_H_

#include "absl/status/statusor.h"
#include "bench/row.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {

/// Derives the schedules of a workload of its first preset's sizes, `rounds` times; `by_node`: for
/// worlds of several nodes. The row's fields: "case", "dtype", "sizes", "nodes" ("one", "several"),
/// "schedules", "graphs" (that differ by more than their kernels), the time as "ours_us" with its
/// confidence interval as "ours_low_us" and "ours_high_us", "spread" (half the interval, over the
/// median), "rounds".
absl::StatusOr<Row> MeasureDerivation(const WorkloadInfo& workload, DType dtype, int rounds,
                                      bool by_node);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_DERIVATION_H_
