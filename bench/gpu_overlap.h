#ifndef COCONET_BENCH_GPU_OVERLAP_H_
#define COCONET_BENCH_GPU_OVERLAP_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/row.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet::bench {

struct GpuOverlapCase {
  int64_t rows = 0, inner = 0, columns = 0;  // of a rank's product [rows, inner] x [inner, columns]
  DType dtype = DType::kBF16;
  double budget_s = 20;  // of tuning one contender
  double seconds = 2;    // of measuring
};

/// Collective. A layer's product, its sum over ranks and its epilogue (bias, dropout, residual),
/// tuned twice in the same rounds: overlapped, and one after the other; with them the product alone
/// by the library, on all multiprocessors of a rank and on those that it has under the overlap. On
/// rank 0 a row of times in microseconds: "ours_us" (overlapped), "sequential_us", "product_us"
/// (alone), "over_sequential", and "bound", which that cannot exceed: the sequential step over the
/// longer one of the product and the rest. Where there is a clock in streams, "product_beside_us"
/// is the product's time under the overlap, and "of_product" what the library alone takes on as
/// many multiprocessors ("product_same_us") over it. On other ranks an empty one.
absl::StatusOr<Row> MeasureGpuOverlap(Rank& rank, const GpuOverlapCase& c);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_GPU_OVERLAP_H_
