#pragma once

#include <string>
#include <utility>
#include <vector>

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

/// A path relative to the user's working directory as an absolute path; "" stays "".
std::string Resolve(const std::string& path);

/// The numbers of a flag that Benchmark::positive names.
std::vector<int> IntegersOf(absl::Span<const std::string> words);

/// Writes the requested files.
absl::Status Save(absl::Span<const Row> rows, absl::Span<const Column> columns);
/// Prints the table and writes the requested files. Internal, with their number, if rows
/// have an "error".
absl::Status Show(absl::Span<const Row> rows, absl::Span<const Column> columns);

/// Prints an error to stderr and returns the exit code: 0 if OK, 2 for invalid input, 1 for others.
int ExitCode(absl::string_view name, const absl::Status& status);

/// A program of bench/. Its flags that are numbers are finite and not negative.
struct Benchmark {
  using Names = std::vector<absl::string_view>;
  absl::string_view name;     // in messages
  absl::string_view purpose;  // that --help prints, with the flags
  Names heeds = {};           // of --quick and --budget; the other one is refused
  Names positive = {};        // flags, and lists, of numbers from 1 on
  std::vector<std::pair<absl::string_view, absl::string_view>> words = {};  // "case", "all, some"
  absl::Status (*run)();  // what it does once its flags are parsed
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
