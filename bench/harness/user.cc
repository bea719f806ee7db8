#include "bench/harness/user.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "absl/flags/usage.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "autotune/command/paths.h"
#include "bench/harness/worker.h"
#include "coconet/base/status.h"

ABSL_FLAG(std::string, json, "", "write the rows to this file");
ABSL_FLAG(std::string, markdown, "", "write the table to this file");
ABSL_FLAG(bool, quick, false, "small sizes, few rounds: does it work? (the times say little)");
ABSL_FLAG(double, budget, 0, "seconds of tuning one program; default: as the benchmark has it");

namespace coconet::bench {
namespace {

Benchmark& TheBenchmark() {
  static Benchmark benchmark;
  return benchmark;
}

/// The number that a flag of a benchmark has; nullopt for other flags.
std::optional<double> NumberOf(const absl::CommandLineFlag& flag) {
  if (!absl::StrContains(flag.Filename(), "bench/")) return std::nullopt;
  if (const std::optional<int> number = flag.TryGet<int>(); number.has_value()) return *number;
  if (const std::optional<int64_t> number = flag.TryGet<int64_t>(); number.has_value())
    return static_cast<double>(*number);
  return flag.TryGet<double>();
}

/// Refuses flags that could not be heeded once the benchmark has run for minutes.
absl::Status CheckFlags() {
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    const std::optional<double> number = NumberOf(*flag);
    if (number.has_value() && !(*number >= 0 && std::isfinite(*number))) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": want a number from 0 on, have ", flag->CurrentValue()));
    }
  }
  RETURN_IF_ERROR(CheckWritable("--json", Resolve(absl::GetFlag(FLAGS_json))));
  return CheckWritable("--markdown", Resolve(absl::GetFlag(FLAGS_markdown)));
}

}  // namespace

bool IsQuick() { return absl::GetFlag(FLAGS_quick); }

double TuningBudget(double usual, double quick) {
  const double budget = absl::GetFlag(FLAGS_budget) > 0 ? absl::GetFlag(FLAGS_budget) : usual;
  return IsQuick() ? std::min(budget, quick) : budget;
}

absl::Status CheckAtLeast(absl::string_view flag, int64_t number, int64_t least) {
  if (number >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": want ", least, " or more, have ", number));
}

std::string Resolve(const std::string& path) {
  return path.empty() ? "" : ResolvePath(path, UserFolder());
}

absl::Status Save(absl::Span<const Row> rows, absl::Span<const Column> columns) {
  if (const std::string json = Resolve(absl::GetFlag(FLAGS_json)); !json.empty())
    RETURN_IF_ERROR(WriteFile(json, Json(rows)));
  if (const std::string markdown = Resolve(absl::GetFlag(FLAGS_markdown)); !markdown.empty())
    RETURN_IF_ERROR(WriteFile(markdown, MarkdownTable(rows, columns)));
  return absl::OkStatus();
}

absl::Status Show(absl::Span<const Row> rows, absl::Span<const Column> columns) {
  absl::PrintF("%s", Table(rows, columns));
  RETURN_IF_ERROR(Save(rows, columns));
  const auto failed =
      absl::c_count_if(rows, [](const Row& row) { return !TextOf(row, "error").empty(); });
  if (failed == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(failed, " of ", rows.size(), " rows failed"));
}

absl::Status CheckNames(absl::string_view flag, absl::Span<const std::string> named,
                        absl::Span<const absl::string_view> known) {
  for (const std::string& name : named) {
    if (absl::c_linear_search(known, name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, ": want ", absl::StrJoin(known, ", "), "; have ", name));
  }
  return absl::OkStatus();
}

int ExitCode(absl::string_view name, const absl::Status& status) {
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "%s: %s\n", name, status.message());
  constexpr int kFailed = 1, kUsage = 2;
  return absl::IsInvalidArgument(status) ? kUsage : kFailed;
}

Registered::Registered(const Benchmark& benchmark) { TheBenchmark() = benchmark; }

int Main(int argc, char** argv) {
  const Benchmark& benchmark = TheBenchmark();
  const auto run = [&]() -> absl::Status {
    const auto arguments = absl::MakeSpan(argv + 1, static_cast<size_t>(argc - 1));
    if (IsWorker(arguments)) return Work(arguments);
    absl::SetProgramUsageMessage(benchmark.usage);
    const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
    if (rest.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown argument ", rest[1], " (see --help)"));
    }
    RETURN_IF_ERROR(CheckFlags());
    return benchmark.run();
  };
  return ExitCode(benchmark.name, run());
}

}  // namespace coconet::bench
