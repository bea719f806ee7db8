#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/harness/row.h"

namespace coconet::bench {

// The user interface of all benchmarks: the flags --json, --markdown, --quick and --budget, the
// table, the exit code.

bool IsQuick();
/// Seconds for tuning one program: --budget, else `usual`; with --quick at most `quick`.
double TuningBudget(double usual, double quick);

/// Parses flags. InvalidArgument for an unknown one.
absl::Status ParseFlags(int argc, char** argv, absl::string_view usage);

/// A path relative to the user's working directory as an absolute path; "" stays "".
std::string Resolve(const std::string& path);

/// Writes the requested files.
absl::Status Save(absl::Span<const Row> rows, absl::Span<const Column> columns);
/// Prints the table and writes the requested files. Internal, with their number, if rows
/// have an "error".
absl::Status Show(absl::Span<const Row> rows, absl::Span<const Column> columns);

/// Prints an error to stderr and returns the exit code: 0 if OK, 2 for invalid input, 1 for others.
int ExitCode(absl::string_view name, const absl::Status& status);

/// A benchmark's main function: parses flags, calls `run`, and returns the exit code.
int Main(absl::string_view name, absl::string_view usage, absl::FunctionRef<absl::Status()> run,
         int argc, char** argv);

// Texts of columns.
std::string TextOf(const Row& row, absl::string_view field);   // "" unless the field holds text
std::string RatioOf(const Row& row, absl::string_view field);  // "1.25"; "" for 0
std::string MetOf(const Row& row);  // "yes", "no: " and the missed fields; "" without bars
/// The row's error if it has one, else the field.
std::string TextOrError(const Row& row, absl::string_view field);

}  // namespace coconet::bench
