#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/harness/row.h"
#include "runtime/rank.h"

namespace coconet::bench {

struct GpuAllReduceCase {
  int64_t bytes = 0;     // of f32 elements
  int64_t steps = 100;   // per graph
  double budget_s = 10;  // of tuning
  double seconds = 1;    // of measuring
};

/// Collective. A tuned sum over all ranks, as one graph of many steps per rank; all ranks launch
/// theirs together. On rank 0 a row: "ours_us" per step, the maximum over ranks; the host's time
/// per step as "dispatch_us" in a stream and "replay_us" in a graph. An empty row on the others.
/// Without graphs, steps run one after the other.
absl::StatusOr<Row> MeasureGpuAllReduce(Rank& rank, const GpuAllReduceCase& c);

}  // namespace coconet::bench
