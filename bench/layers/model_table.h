#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/harness/finding.h"
#include "bench/harness/row.h"
#include "bench/layers/model_cases.h"

namespace coconet::bench {

/// The common fields of rows of model and pipeline parallelism: "case", "ranks",
/// "dtype", "sizes", "machine".
Row NewModelRow(absl::string_view name, const ModelCase& c, int ranks, absl::string_view processes);
/// Sets, per side, "<side>_us" of the fastest finding with its confidence interval and
/// "<side>_variant"; and "rounds".
void SetSides(Row& row, absl::Span<const Finding> findings);
void SetError(Row& row, const absl::Status& status);

/// A benchmark's run, in which `measure` fills in rows; shows them also after an interruption.
absl::Status ShowRows(
    absl::Span<const Column> columns,
    absl::FunctionRef<absl::Status(const std::string& scratch, std::vector<Row>& rows)> measure);

}  // namespace coconet::bench
