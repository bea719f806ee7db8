#pragma once

#include "absl/status/statusor.h"
#include "bench/harness/row.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {

/// Times the derivation of a workload's schedules, for its first preset's sizes. `by_node`: for
/// worlds of several nodes. The fields are "case", "dtype", "sizes", "nodes" ("one", "several"),
/// "schedules", "graphs" (those that differ in more than their kernels), "ours_us" with its
/// confidence interval "ours_low_us" and "ours_high_us", "spread" (half the interval over the
/// median), "rounds".
absl::StatusOr<Row> MeasureDerivation(const WorkloadInfo& workload, DType dtype, int rounds,
                                      bool by_node);

}  // namespace coconet::bench
