#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/suite/worker.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr std::pair<absl::string_view, WorkerOptions::Task> kTasks[] = {
    {"compare", WorkerOptions::Task::kCompare},
    {"dispatch", WorkerOptions::Task::kDispatch},
    {"warm-start", WorkerOptions::Task::kWarmStart},
    {"tune", WorkerOptions::Task::kTune},
};

constexpr std::pair<absl::string_view, bool Sides::*> kSides[] = {{"ours", &Sides::ours},
                                                                  {"flat", &Sides::flat},
                                                                  {"baseline", &Sides::baseline},
                                                                  {"limit", &Sides::limit}};

/// Returns false for an invalid argument.
bool Read(absl::string_view name, absl::string_view value, WorkerOptions& options) {
  if (name == "--worker") {
    for (const auto& [task_name, task] : kTasks) {
      if (value != task_name) continue;
      options.task = task;
      return true;
    }
    return false;
  }
  if (name == "--cells") {
    for (absl::string_view text : absl::StrSplit(value, ',')) {
      const absl::StatusOr<Cell> cell = ParseCell(text);
      if (!cell.ok()) return false;
      options.cells.push_back(*cell);
    }
    return true;
  }
  if (name == "--sides") {
    for (absl::string_view text : absl::StrSplit(value, ',', absl::SkipEmpty())) {
      for (const auto& [side_name, side] : kSides) options.sides.*side |= text == side_name;
    }
    return true;
  }
  if (name == "--form" || name == "--out") {
    (name == "--form" ? options.sides.form : options.out) = std::string(value);
    return true;
  }
  return (name == "--threads" && absl::SimpleAtoi(value, &options.threads)) ||
         (name == "--seconds" && absl::SimpleAtod(value, &options.seconds)) ||
         (name == "--min-rounds" && absl::SimpleAtoi(value, &options.min_rounds)) ||
         (name == "--steps" && absl::SimpleAtoi(value, &options.steps)) ||
         (name == "--tuned" && absl::SimpleAtob(value, &options.tuned)) ||
         (name == "--budget" && absl::SimpleAtod(value, &options.budget_s));
}

}  // namespace

std::vector<std::string> Arguments(const WorkerOptions& options) {
  absl::string_view task;
  for (const auto& [name, value] : kTasks) {
    if (value == options.task) task = name;
  }
  std::vector<absl::string_view> sides;
  for (const auto& [name, side] : kSides) {
    if (options.sides.*side) sides.push_back(name);
  }
  const auto cells = absl::StrJoin(
      options.cells, ",", [](std::string* out, const Cell& cell) { out->append(Text(cell)); });
  return {absl::StrCat("--worker=", task),
          absl::StrCat("--threads=", options.threads),
          absl::StrCat("--cells=", cells),
          absl::StrCat("--sides=", absl::StrJoin(sides, ",")),
          absl::StrCat("--form=", options.sides.form),
          absl::StrCat("--seconds=", options.seconds),
          absl::StrCat("--min-rounds=", options.min_rounds),
          absl::StrCat("--steps=", options.steps),
          absl::StrCat("--tuned=", options.tuned ? "true" : "false"),
          absl::StrCat("--budget=", options.budget_s)};
}

absl::StatusOr<std::optional<WorkerOptions>> WorkerOptionsFrom(absl::Span<char* const> arguments) {
  if (arguments.empty() || !absl::StartsWith(arguments[0], "--worker=")) return std::nullopt;
  WorkerOptions options;
  for (const char* argument : arguments) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    if (!Read(parts.first, parts.second, options)) {
      return absl::InvalidArgumentError(absl::StrCat("worker: what is ", argument, "?"));
    }
  }
  return options;
}

}  // namespace coconet::bench
