#include "bench/scripts/script.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autotune/measure/statistics.h"
#include "bench/harness/user.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "jit/compile/process.h"

namespace coconet::bench {
namespace {

constexpr int kNoLibrary = 3;  // exit code

std::vector<Finding> FindingsIn(absl::string_view output) {
  std::vector<Finding> found;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    if (words.size() < 3) continue;
    if (words[0] == "fact") found.push_back({.side = words[1], .detail = words[2]});
    if (words[0] != "time") continue;
    const std::pair<std::string, std::string> names =
        absl::StrSplit(words[1], absl::MaxSplits('/', 1));
    std::vector<double> samples;
    for (absl::string_view text : absl::StrSplit(words[2], ' ')) {
      if (double us = 0; absl::SimpleAtod(text, &us)) samples.push_back(us);
    }
    found.push_back({.side = names.first, .name = names.second, .timing = Summarize(samples)});
  }
  return found;
}

}  // namespace

absl::StatusOr<std::vector<Finding>> RunScript(const Script& script) {
  const bool is_path = absl::StrContains(script.python, '/');
  const std::string python = FindProgram(is_path ? Resolve(script.python) : script.python);
  if (python.empty())
    return absl::UnavailableError(absl::StrCat(script.python, ": no such program"));
  ProcessCommand command;
  command.argv = script.launcher;
  command.argv.insert(command.argv.end(), {python, script.file});
  command.argv.insert(command.argv.end(), script.arguments.begin(), script.arguments.end());
  command.environment = script.environment;
  command.environment.push_back("PYTHONDONTWRITEBYTECODE=1");
  command.time_limit_s = script.time_limit_s;
  command.output_limit = 16 << 20;
  ASSIGN_OR_RETURN(const Finished finished, RunProcess(command));
  const bool has_exited = finished.how == Finished::How::kExited;
  if (has_exited && finished.code == kNoLibrary)
    return absl::UnavailableError(absl::StrCat(script.python, ": ", finished.output));
  constexpr size_t kEnd = 1000;
  const size_t size = finished.output.size();
  const std::string end = finished.output.substr(size < kEnd ? 0 : size - kEnd);
  if (!has_exited || finished.code != 0) {
    const bool is_late = finished.how == Finished::How::kTimedOut;
    return absl::InternalError(absl::StrCat(script.file, is_late ? ": too late: " : ": ", end));
  }
  std::vector<Finding> found = FindingsIn(finished.output);
  for (const std::string& side : script.sides) {
    if (FastestOf(found, side) != nullptr) continue;
    return absl::InternalError(
        absl::StrCat(script.file, ": want a line 'time ", side, " SAMPLE...', have ", end));
  }
  return found;
}

}  // namespace coconet::bench
