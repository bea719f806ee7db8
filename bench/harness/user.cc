#include "bench/harness/user.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
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

/// The flags of the program's own files and of user.cc.
bool IsOfBenchmark(absl::string_view file) { return absl::StrContains(file, "bench/"); }

bool IsList(const absl::CommandLineFlag& flag) { return flag.IsOfType<std::vector<std::string>>(); }

/// Whether `word` is a number of this flag, and no less than `least`.
bool IsNumber(const absl::CommandLineFlag& flag, absl::string_view word, double least) {
  int integer = 0;
  double number = 0;
  if (IsList(flag) && !absl::SimpleAtoi(word, &integer)) return false;
  return absl::SimpleAtod(word, &number) && std::isfinite(number) && number >= least;
}

absl::Status CheckFlag(const Benchmark& benchmark, const absl::CommandLineFlag& flag) {
  const std::string text = flag.CurrentValue();
  if (text.empty()) return absl::OkStatus();
  const bool is_positive = absl::c_linear_search(benchmark.positive, flag.Name()),
             is_number = is_positive || flag.IsOfType<int>() || flag.IsOfType<int64_t>() ||
                         flag.IsOfType<double>();
  const double least = is_positive ? 1 : 0;
  std::string wanted;
  for (const absl::string_view word : absl::StrSplit(text, IsList(flag) ? "," : "\n")) {
    if (is_number && !IsNumber(flag, word, least))
      wanted = absl::StrCat(IsList(flag) ? "numbers" : "a number", " from ", least, " on");
    for (const auto& [name, known] : benchmark.words) {
      const std::vector<absl::string_view> all = absl::StrSplit(known, ", ");
      if (name == flag.Name() && !absl::c_linear_search(all, word))
        wanted = absl::StrCat(IsList(flag) ? "some of " : "one of ", known);
    }
  }
  if (wanted.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag.Name(), ": want ", wanted, "; have ", text));
}

/// Refuses flags that could not be heeded, before the benchmark runs for minutes.
absl::Status CheckFlags(const Benchmark& benchmark) {
  for (const absl::string_view name : {"quick", "budget"}) {
    const absl::CommandLineFlag& flag = *absl::FindCommandLineFlag(name);
    if (flag.CurrentValue() == flag.DefaultValue() || absl::c_linear_search(benchmark.heeds, name))
      continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, ": this benchmark has no use for it"));
  }
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (IsOfBenchmark(flag->Filename())) RETURN_IF_ERROR(CheckFlag(benchmark, *flag));
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
  if (rows.empty()) return absl::InvalidArgumentError("no row has what the flags name");
  absl::PrintF("%s", Table(rows, columns));
  RETURN_IF_ERROR(Save(rows, columns));
  const auto failed =
      absl::c_count_if(rows, [](const Row& row) { return !TextOf(row, "error").empty(); });
  if (failed == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(failed, " of ", rows.size(), " rows failed"));
}

std::vector<int> IntegersOf(absl::Span<const std::string> words) {
  std::vector<int> integers;
  for (const std::string& word : words) CC_CHECK(absl::SimpleAtoi(word, &integers.emplace_back()));
  return integers;
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
    absl::SetProgramUsageMessage(absl::StrCat(benchmark.purpose, "; see bench/README.md"));
    absl::FlagsUsageConfig help;
    help.contains_help_flags = IsOfBenchmark;
    absl::SetFlagsUsageConfig(help);
    const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
    if (rest.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown argument ", rest[1], " (see --help)"));
    }
    RETURN_IF_ERROR(CheckFlags(benchmark));
    return benchmark.run();
  };
  return ExitCode(benchmark.name, run());
}

}  // namespace coconet::bench
