#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/moe.h"
#include "bench/row.h"

namespace coconet::bench {

/// What `fused` measures of a mixture of experts: few and many experts, chosen equally or not.
std::vector<MoeCase> MoeCases(DType dtype);

/// A row whose error, if any, is in it; other errors end the benchmark. Two nodes of one rank,
/// whose links have the rate at which sending takes 0.6 to 1 of the computation. "ceiling" is what
/// computation and sending, one after the other, take over OverlapBound.
absl::StatusOr<Row> MoeRow(const MoeCase& c, const std::string& scratch);

}  // namespace coconet::bench
