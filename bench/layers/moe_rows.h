#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/row.h"
#include "bench/layers/moe.h"

namespace coconet::bench {

/// What `fused` measures of a mixture of experts: few and many experts, chosen equally or not.
std::vector<MoeCase> MoeCases(DType dtype);

/// A row of MeasureOnTwoNodes, whose error, if any, is in it; other errors end the benchmark.
absl::StatusOr<Row> MoeRow(const MoeCase& c, const std::string& scratch);

}  // namespace coconet::bench
