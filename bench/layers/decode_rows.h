#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/row.h"
#include "bench/layers/decode.h"

namespace coconet::bench {

/// What `fused` measures of decode: weights that come from memory, and weights that fit a cache.
std::vector<DecodeCase> DecodeCases(DType dtype);

/// A row whose error, if any, is in it; other errors end the benchmark. "bound" is the larger of
/// the times that loading the weights and multiplying take.
absl::StatusOr<Row> DecodeRow(const DecodeCase& c, int ranks, const std::string& scratch);

}  // namespace coconet::bench
