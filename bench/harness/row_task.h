#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "bench/harness/row.h"

namespace coconet::bench {

/// A row that a benchmark measures.
struct RowTask {
  std::string words;  // printed to stderr before it is measured
  Row row;            // its first fields
  /// Sets further fields; `scratch` is a folder for temporary files, one for all rows.
  std::function<absl::Status(const std::string& scratch, Row& row)> measure;
};

/// Measures rows, with "load_before" and AddMachine's fields after their first ones, and shows
/// them, also after an interruption. An error is the row's "error", but Cancelled and Unavailable
/// end the benchmark.
absl::Status MeasureRows(absl::Span<const RowTask> tasks, absl::Span<const Column> columns);

}  // namespace coconet::bench
