#ifndef COCONET_BENCH_USER_H_
#define COCONET_BENCH_USER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/row.h"

namespace coconet::bench {

// The user interface that all benchmarks share: the flags --json, --markdown, --quick and --budget,
// the table, the exit code.

bool IsQuick();
/// Seconds of tuning one program: --budget, else `usual`; when quick, at most `quick`.
double TuningBudget(double usual, double quick);

/// Parses flags. InvalidArgument for what is no flag.
absl::Status ParseFlags(int argc, char** argv, absl::string_view usage);

/// A file's or folder's path as the user means it; "" stays "".
std::string Resolve(const std::string& path);

/// Prints the table, and writes the files that were asked for. Internal, with how many, when rows
/// have an "error".
absl::Status Show(absl::Span<const Row> rows, absl::Span<const Column> columns);

/// 0; else says what is wrong on stderr: 2 for input, 1 for anything else.
int ExitCode(absl::string_view name, const absl::Status& status);

// What columns show.
std::string TextOf(const Row& row, absl::string_view field);   // "" unless the field holds text
std::string RatioOf(const Row& row, absl::string_view field);  // "1.25"; "" for 0
std::string MetOf(const Row& row);  // "yes", "no: " and what is missed; "" without bars
/// The field; where the row has an error, that.
std::string TextOrError(const Row& row, absl::string_view field);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_USER_H_
