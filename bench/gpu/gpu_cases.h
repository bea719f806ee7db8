#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/gpu/ceilings.h"
#include "bench/harness/row.h"
#include "runtime/rank.h"

namespace coconet::bench {

struct GpuTerms {
  double budget_s = 0;  // of tuning one contender
  double seconds = 0;   // of measuring
};

// Each is collective, and returns a row of times in microseconds on rank 0, an empty one on others.

/// Mixed-precision Adam over `n` elements on ranks that may share one GPU, in the same rounds as: a
/// copy of `copied_bytes` by all ranks together, which shows the GPU's memory bandwidth; an
/// AllReduce by our own two-shot kernel followed by one fused kernel; and a reduce-scatter, a fused
/// kernel and an all-gather. Each of ours is tuned. The row has "copy_gb_s", "gb_s" (of the bytes
/// that any schedule must move) and "of_copy".
absl::StatusOr<Row> MeasureGpuAdam(Rank& rank, int64_t n, int64_t copied_bytes,
                                   const GpuTerms& terms);

/// A tuned sum of `bytes` bytes of f32 over all ranks, as one graph of many steps per rank; all
/// ranks launch theirs together. "ours_us" is per step, the maximum over ranks; the host's time per
/// step is "dispatch_us" in a stream and "replay_us" in a graph. Without graphs, steps run one
/// after the other.
absl::StatusOr<Row> MeasureGpuAllReduce(Rank& rank, int64_t bytes, const GpuTerms& terms);

/// A layer's product, its sum over ranks and its epilogue (bias, dropout, residual), tuned twice
/// and timed in the same rounds: overlapped, and sequential; also the library's product alone, on
/// all multiprocessors of a rank and on those that it has under the overlap. The row has "ours_us"
/// (overlapped), "sequential_us", "product_us" (alone); "over_sequential", and its upper limit
/// "bound": the sequential step over the longer of the product and the rest. With a clock in
/// streams also "product_beside_us", the product's time under the overlap, and "of_product", the
/// time of the product alone on as many multiprocessors ("product_same_us") over it.
absl::StatusOr<Row> MeasureGpuOverlap(Rank& rank, const ProductCase& product,
                                      const GpuTerms& terms);

}  // namespace coconet::bench
