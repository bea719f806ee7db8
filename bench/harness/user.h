#pragma once

#include <cstdint>
#include <string>

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

/// InvalidArgument, with the flag's name ("--ranks"), if its number is less than `least`.
absl::Status CheckAtLeast(absl::string_view flag, int64_t number, int64_t least = 1);

/// A path relative to the user's working directory as an absolute path; "" stays "".
std::string Resolve(const std::string& path);

/// InvalidArgument unless each of the names that a flag has is a known one.
absl::Status CheckNames(absl::string_view flag, absl::Span<const std::string> named,
                        absl::Span<const absl::string_view> known);

/// Writes the requested files.
absl::Status Save(absl::Span<const Row> rows, absl::Span<const Column> columns);
/// Prints the table and writes the requested files. Internal, with their number, if rows
/// have an "error".
absl::Status Show(absl::Span<const Row> rows, absl::Span<const Column> columns);

/// Prints an error to stderr and returns the exit code: 0 if OK, 2 for invalid input, 1 for others.
int ExitCode(absl::string_view name, const absl::Status& status);

/// A program of bench/.
struct Benchmark {
  absl::string_view name;   // in messages
  absl::string_view usage;  // that --help prints
  absl::Status (*run)();    // what it does once its flags are parsed
};
/// Makes a benchmark what `Main` of this binary runs: each binary has one, at namespace scope.
class Registered {
 public:
  explicit Registered(const Benchmark& benchmark);
};
/// The main function of all benchmarks (main.cc): a worker's (worker.h) if the first argument says
/// so, else parses flags and runs the registered benchmark. Returns the exit code.
int Main(int argc, char** argv);

}  // namespace coconet::bench
