#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jit/compile/process.h"

namespace coconet::bench {

/// For tests: runs bench/`program`, a copy of which lies in the test's temporary folder. A failed
/// test if it cannot.
Finished RunBenchmark(const std::string& program, std::vector<std::string> arguments);
/// Expects that the program refuses the arguments with this message behind its name.
void ExpectRefusal(const std::string& program, std::vector<std::string> arguments,
                   const std::string& message);

/// The number of rows that have a condition in SQL, in which `$.name` is the value of a field. The
/// JSON in `file`, of the test's temporary folder, is read by SQLite, a parser that is not ours.
/// -1, and a failed test, if it is not JSON.
int64_t RowsOf(const std::string& file, const std::string& condition);

}  // namespace coconet::bench
