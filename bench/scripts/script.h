#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/finding.h"

namespace coconet::bench {

/// A Python script that measures another library.
struct Script {
  std::string python = {};  // the interpreter: a name on PATH, or a path from the user's folder
  std::string file = {};    // relative to the working directory: the repository or its runfiles
  std::vector<std::string> arguments = {};
  std::vector<std::string> launcher = {};     // a command that starts it on nodes (worker.h)
  std::vector<std::string> environment = {};  // "NAME=value"
  std::vector<std::string> sides = {};        // the script must print a time of each
  double time_limit_s = 600;
};

/// Runs a script to its end and reads what it prints: times, lines "time SIDE SAMPLE..." or "time
/// SIDE/NAME SAMPLE..." in microseconds, and facts, lines "fact NAME TEXT". Unavailable, with its
/// output, if the interpreter cannot be started or has no such library (exit code 3); Internal,
/// with the end of its output, if the script failed or a side is missing.
absl::StatusOr<std::vector<Finding>> RunScript(const Script& script);

}  // namespace coconet::bench
