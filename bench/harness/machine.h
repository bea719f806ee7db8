#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "bench/harness/row.h"

namespace coconet::bench {

/// Adds what times depend on, and nothing that identifies the machine: "cpu", "cores", "l3",
/// "kernel", "huge_pages", "compiler", "mpi", "vectors" (of the baseline's loops), "revision" (if
/// the checkout is known) and "date".
void AddMachine(Row& row);

/// The average number of runnable threads in the last minute; only ours if nothing else runs.
double LoadAverage();

/// A row that a benchmark measures.
struct RowTask {
  std::string words;  // printed to stderr before it is measured
  Row row;            // its first fields
  /// Sets further fields; `scratch` is a folder for temporary files, one for all rows.
  std::function<absl::Status(const std::string& scratch, Row& row)> measure;
  std::string bars = {};  // "ratio >= 2.5", say, which a row without --quick should reach
};

/// Measures rows, with "load_before" and AddMachine's fields after their first ones, and shows
/// them, also after an interruption. An error is the row's "error", but Cancelled and Unavailable
/// end the benchmark.
absl::Status MeasureRows(absl::Span<const RowTask> tasks, absl::Span<const Column> columns);

}  // namespace coconet::bench
