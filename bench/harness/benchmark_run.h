#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/compile/process.h"

namespace coconet::bench {

/// For tests: runs bench/`program`, a copy of which lies in the test's temporary folder. A failed
/// test if it cannot.
Finished RunBenchmark(const std::string& program, std::vector<std::string> arguments);
/// Expects that the program refuses the arguments with this message behind its name.
void ExpectRefusal(const std::string& program, std::vector<std::string> arguments,
                   const std::string& message);

/// Queries JSON through SQLite, a parser that is not ours.
class JsonReader {
 public:
  explicit JsonReader(std::string json) : json_(std::move(json)) {}
  /// A file in the test's temporary folder. A failed test if it is not JSON.
  static JsonReader OfFile(const std::string& name);
  /// The number of objects of a list for which a condition in SQL is true; in it `$.name` is the
  /// value of a field.
  int64_t Rows(const std::string& condition) const;

 private:
  /// The first column of the result; `sql` sees the JSON as ?1. -1, and a failed test, if there is
  /// no result.
  int64_t Ask(const std::string& sql) const;
  absl::StatusOr<int64_t> TryAsk(const std::string& sql) const;

  std::string json_;
};

}  // namespace coconet::bench
