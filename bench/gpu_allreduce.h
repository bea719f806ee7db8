#ifndef COCONET_BENCH_GPU_ALLREDUCE_H_
#define COCONET_BENCH_GPU_ALLREDUCE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/row.h"
#include "runtime/rank.h"

namespace coconet::bench {

struct GpuAllReduceCase {
  int64_t bytes = 0;     // of f32
  int64_t steps = 100;   // of a graph
  double budget_s = 10;  // of tuning
  double seconds = 1;    // of measuring
};

/// Collective. A sum over all ranks, tuned, as a graph of many steps per rank; all ranks launch
/// theirs together. On rank 0 a row: "ours_us" of a step, the maximum over ranks; of the host's
/// part "dispatch_us" for one step in a stream and "replay_us" for one of a graph's. On others an
/// empty one. Where there are no graphs, steps run one after the other.
absl::StatusOr<Row> MeasureGpuAllReduce(Rank& rank, const GpuAllReduceCase& c);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_GPU_ALLREDUCE_H_
