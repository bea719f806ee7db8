#include "runtime/testing/mpirun.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace coconet {

MpiOutcome RunMpi(const std::string& command) {
  const auto start = std::chrono::steady_clock::now();
  MpiOutcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), n);
  outcome.exit_code = WEXITSTATUS(pclose(pipe));
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (absl::string_view line : absl::StrSplit(outcome.output, '\n')) {
    if (absl::StartsWith(line, "rank ")) outcome.lines.push_back(std::string(line));
  }
  std::sort(outcome.lines.begin(), outcome.lines.end());
  return outcome;
}

absl::Status SayOutcome(const Rank& rank, const absl::Status& status) {
  // One write per line: mpirun mixes the ranks' output.
  const std::string line = absl::StrCat("rank ", rank.rank(), ": ", status.ToString(), "\n");
  return write(STDOUT_FILENO, line.data(), line.size()) < 0 ? absl::InternalError("write") : status;
}

}  // namespace coconet
