#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "bench/baselines/gemm.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// Collective: each rank multiplies matrices of its own, by oneDNN in several ways and by a
/// GemmStep, in the same rounds, after a check that all agree. Fields in GFLOP/s of the slowest
/// rank: "ours", "plain" (weights as stored), "packed" (rearranged once, before), "packing"
/// (rearranged in every step). "onednn_dtype": the type that oneDNN multiplied, f32 if it has no
/// product of `dtype`; then "over_widened": the time of "plain", which widens the operands first,
/// over ours.
absl::StatusOr<Row> MeasureGemm(Rank& rank, DType dtype, const GemmSize& size,
                                const RoundTerms& terms);

/// Collective. One row ("case": "gemm_pieces") for the whole product, and for it in 2 and in 4
/// pieces of rows and of columns, each by each way of a host's GemmStep ("way": "plain", "packed",
/// rearranging in every step, "gemm"), all in the same rounds. "us" with "low_us" and "high_us" is
/// the time of all pieces on the slowest rank, "speed" in GFLOP/s, and "over_whole" the time over
/// that of the fastest whole product.
absl::StatusOr<std::vector<Row>> MeasurePieces(Rank& rank, DType dtype, const GemmSize& size,
                                               const RoundTerms& terms);

}  // namespace coconet::bench
