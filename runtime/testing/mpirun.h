#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

// Between a test and the program of checks that it starts as ranks.

struct MpiOutcome {
  int exit_code = -1;
  double seconds = 0;
  std::vector<std::string> lines;  // printed by the ranks' SayOutcome, sorted
  std::string output;
};
/// Runs a shell command: mpirun with a program of checks.
MpiOutcome RunMpi(const std::string& command);

/// Called by a rank of the program: prints "rank N: OK" or the error; returns `status`.
absl::Status SayOutcome(const Rank& rank, const absl::Status& status);

}  // namespace coconet
