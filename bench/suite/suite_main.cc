#include "bench/suite/suite_main.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/harness/user.h"
#include "bench/suite/worker.h"
#include "coconet/base/status.h"
#include "jit/compile/temp_dir.h"

ABSL_FLAG(std::vector<std::string>, case, {}, "only these cases, comma-separated");
ABSL_FLAG(std::string, cache, "",
          "folder of tuned programs and compiled kernels to use; default: a new one");

namespace coconet::bench {
namespace {

absl::StatusOr<SuiteOptions> OptionsFromFlags(const SuiteProgram& program,
                                              const std::string& scratch) {
  SuiteOptions options;
  options.topic = program.topic;
  options.quick = IsQuick();
  options.cases = absl::GetFlag(FLAGS_case);
  const std::vector<std::string> known = Suite::Cases(program.topic);
  for (const std::string& name : options.cases) {
    if (!absl::c_linear_search(known, name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--case: no case \"", name, "\"; there are ", absl::StrJoin(known, ", ")));
    }
  }
  RETURN_IF_ERROR(program.options(options));
  options.cache_dir = Resolve(absl::GetFlag(FLAGS_cache));
  options.scratch = scratch;
  options.budget_s = TuningBudget(program.budget_s, /*quick=*/2);
  options.progress = [start = std::chrono::steady_clock::now()](absl::string_view line) {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start;
    absl::FPrintF(stderr, "[%4.0f s] %s\n", since.count(), line);
  };
  return options;
}

/// Columns of Topic::kDataParallel or kLists only.
std::vector<Column> FlatColumns() {
  return {{"flat", [](const Row& row) { return TimeText(row.Number("flat_us")); }},
          {"vs flat", [](const Row& row) { return RatioOf(row, "vs_flat"); }}};
}

std::vector<Column> Columns(Topic topic) {
  std::vector<Column> columns = {
      {"case",
       [](const Row& row) {
         return absl::StrCat(TextOf(row, "case"), TextOf(row, "call").empty() ? "" : " ",
                             TextOf(row, "call"));
       }},
      {"ranks", [](const Row& row) { return absl::StrCat(row.Number("ranks")); }},
      {"N",
       [](const Row& row) {
         const std::string list = TextOf(row, "list");
         return list.empty() ? CountText(static_cast<int64_t>(row.Number("n"))) : list;
       }},
      {"dtype", [](const Row& row) { return TextOf(row, "dtype"); }},
      {"ours", [](const Row& row) { return TimeText(row.Number("ours_us")); }},
      {"+-",
       [](const Row& row) {
         const double ours = row.Number("ours_us"),
                      width = row.Number("ours_high_us") - row.Number("ours_low_us");
         return ours == 0 ? "" : absl::StrFormat("%.0f %%", 50 * width / ours);
       }},
      {"baseline", [](const Row& row) { return TimeText(row.Number("baseline_us")); }},
      {"ratio", [](const Row& row) { return RatioOf(row, "ratio"); }},
      {"vs default", [](const Row& row) { return RatioOf(row, "vs_default"); }},
      {"limit", [](const Row& row) { return TimeText(row.Number("limit_us")); }},
      {"of limit", [](const Row& row) { return RatioOf(row, "of_limit"); }},
      {"bar", [](const Row& row) { return TextOf(row, "bar"); }},
      {"met", MetOf},
      {"variant", [](const Row& row) { return TextOrError(row, "variant"); }},
  };
  if (topic == Topic::kLists) {
    const std::vector<Column> flat = FlatColumns();
    const auto before =
        absl::c_find_if(columns, [](const Column& column) { return column.title == "limit"; });
    columns.insert(before, flat.begin(), flat.end());
  }
  return columns;
}

absl::Status RunAll(const SuiteOptions& options) {
  Suite suite(options);
  absl::Status status = suite.Run();
  status.Update(Show(suite.rows(),
                     Columns(options.topic)));  // what was measured before an interruption is kept
  return status;
}

absl::Status RunAsUserSays(const SuiteProgram& program, int argc, char** argv) {
  RETURN_IF_ERROR(ParseFlags(argc, argv, program.usage));
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  ASSIGN_OR_RETURN(const SuiteOptions options, OptionsFromFlags(program, scratch->path()));
  return RunAll(options);
}

}  // namespace

int SuiteMain(const SuiteProgram& program, int argc, char** argv) {
  const absl::StatusOr<std::optional<WorkerOptions>> worker =
      WorkerOptionsFrom(absl::MakeSpan(argv + 1, static_cast<size_t>(argc - 1)));
  if (!worker.ok()) return ExitCode(program.name, worker.status());
  return ExitCode(program.name,
                  worker->has_value() ? Work(**worker) : RunAsUserSays(program, argc, argv));
}

}  // namespace coconet::bench
