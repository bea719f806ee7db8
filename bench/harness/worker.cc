#include "bench/harness/worker.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr absl::string_view kWorker = "--worker=", kOut = "--out";

std::map<std::string, std::function<WorkerTask()>, std::less<>>& Workers() {
  static auto& workers = *new std::map<std::string, std::function<WorkerTask()>, std::less<>>;
  return workers;
}

absl::Status Unknown(absl::string_view argument) {
  return absl::InvalidArgumentError(absl::StrCat("worker: what is ", argument, "?"));
}

}  // namespace

std::string WordOf(DType value) { return std::string(Name(value)); }
std::string WordOf(const Sizes& value) {
  return absl::StrJoin(value, ",", [](std::string* out, const auto& size) {
    absl::StrAppend(out, size.first, ":", size.second.sizes[0]);
  });
}
std::string WordOf(const std::vector<int64_t>& value) { return absl::StrJoin(value, ","); }

bool FromWord(absl::string_view word, std::string& value) {
  value = std::string(word);
  return true;
}
bool FromWord(absl::string_view word, DType& value) {
  const std::optional<DType> dtype = ParseDType(word);
  if (dtype.has_value()) value = *dtype;
  return dtype.has_value();
}
bool FromWord(absl::string_view word, Sizes& value) {
  for (absl::string_view text : absl::StrSplit(word, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> size = absl::StrSplit(text, absl::MaxSplits(':', 1));
    int64_t number = 0;
    if (!absl::SimpleAtoi(size.second, &number)) return false;
    value.insert_or_assign(size.first, number);
  }
  return true;
}
bool FromWord(absl::string_view word, std::vector<int64_t>& value) {
  for (absl::string_view text : absl::StrSplit(word, ',', absl::SkipEmpty())) {
    if (!absl::SimpleAtoi(text, &value.emplace_back())) return false;
  }
  return true;
}

void RegisterWorker(absl::string_view name, std::function<WorkerTask()> make) {
  Workers().emplace(name, std::move(make));
}

bool IsWorker(absl::Span<char* const> arguments) {
  return !arguments.empty() && absl::StartsWith(arguments[0], kWorker);
}

absl::Status Work(absl::Span<char* const> arguments) {
  const auto worker = Workers().find(absl::StripPrefix(arguments[0], kWorker));
  if (worker == Workers().end()) return Unknown(arguments[0]);
  const WorkerTask task = worker->second();
  std::string out;
  for (const char* argument : arguments.subspan(1)) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    if (parts.first == kOut)
      out = std::string(parts.second);
    else if (!task.set(parts.first, parts.second))
      return Unknown(argument);
  }
  return RunWorld(task.world(), [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<Finding> found, task.measure(rank));
    return rank.rank() == 0 ? WriteFindings(out, found) : absl::OkStatus();
  });
}

}  // namespace coconet::bench
