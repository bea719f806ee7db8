#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/gpu/gpu_copy.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet::bench {

struct GpuAdamCase {
  int64_t n = 0;
  DType dtype = DType::kBF16;  // of gradients and weights; states are f32
  double budget_s = 30;        // of tuning one contender
  double seconds = 3;          // of measuring
  int64_t copied_bytes = 0;    // of all ranks together
  Copies copy;
};

/// Collective. Mixed-precision Adam on ranks that may share one GPU, in the same rounds as: a copy,
/// which shows the GPU's memory bandwidth; an AllReduce by our own two-shot kernel followed by one
/// fused kernel; and a reduce-scatter, a fused kernel and an all-gather. Each of ours is tuned. On
/// rank 0 a row of times in microseconds, with "copy_gb_s", "gb_s" (of the bytes that any schedule
/// must move) and "of_copy"; an empty row on the others.
absl::StatusOr<Row> MeasureGpuAdam(Rank& rank, const GpuAdamCase& c);

}  // namespace coconet::bench
