#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/harness/row.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet::bench {

struct GpuOverlapCase {
  int64_t rows = 0, inner = 0,
          columns = 0;  // each rank multiplies [rows, inner] x [inner, columns]
  DType dtype = DType::kBF16;
  double budget_s = 20;  // of tuning one contender
  double seconds = 2;    // of measuring
};

/// Collective. A layer's product, its sum over ranks and its epilogue (bias, dropout, residual),
/// tuned twice and timed in the same rounds: overlapped, and sequential; also the library's product
/// alone, on all multiprocessors of a rank and on those that it has under the overlap. On rank 0 a
/// row of times in microseconds: "ours_us" (overlapped), "sequential_us", "product_us" (alone);
/// "over_sequential", and its upper limit "bound": the sequential step over the longer of the
/// product and the rest. With a clock in streams also "product_beside_us", the product's time under
/// the overlap, and "of_product", the time of the product alone on as many multiprocessors
/// ("product_same_us") over it. An empty row on other ranks.
absl::StatusOr<Row> MeasureGpuOverlap(Rank& rank, const GpuOverlapCase& c);

}  // namespace coconet::bench
