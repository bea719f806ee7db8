#ifndef COCONET_BENCH_GPU_ADAM_H_
#define COCONET_BENCH_GPU_ADAM_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "bench/rounds.h"
#include "bench/row.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// Between two places of this rank's memory, both large; done when it returns.
using Copies = std::function<absl::Status(const void* from, int64_t bytes, void* to)>;

struct GpuAdamCase {
  int64_t n = 0;
  DType dtype = DType::kBF16;  // of gradients and weights; states are f32
  double budget_s = 30;        // of tuning one contender
  double seconds = 3;          // of measuring
  int64_t copied_bytes = 0;    // of all ranks together
  Copies copy;
};

/// Collective. Mixed-precision Adam on ranks that may share one GPU, in the same rounds as: the
/// fastest copy that the GPU's memory allows, an AllReduce by our own two-shot kernel with one
/// fused kernel behind it, and a reduce-scatter, a fused kernel and an all-gather. Each of ours is
/// tuned. On rank 0 a row of times in microseconds, "copy_gb_s", "gb_s" (of what any schedule must
/// move at least) and "of_copy"; on others an empty one.
absl::StatusOr<Row> MeasureGpuAdam(Rank& rank, const GpuAdamCase& c);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_GPU_ADAM_H_
