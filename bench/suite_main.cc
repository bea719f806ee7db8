#include "bench/suite_main.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "autotune/sweep_flags.h"
#include "bench/worker.h"
#include "coconet/base/status.h"
#include "jit/temp_dir.h"

ABSL_FLAG(std::string, json, "", "write the rows to this file");
ABSL_FLAG(std::string, markdown, "", "write the table to this file");
ABSL_FLAG(bool, quick, false, "small sizes, few rounds: does it work? (the times say little)");
ABSL_FLAG(std::vector<std::string>, case, {}, "only these cases, comma-separated");
ABSL_FLAG(std::string, cache, "", "folder of tuned programs and compiled kernels to use; default: a new one");
ABSL_FLAG(double, budget, 0, "seconds of tuning one program; default: as the benchmark has it");

namespace coconet::bench {
namespace {

constexpr int kOk = 0, kFailed = 1, kUsage = 2;

/// A file's or folder's path as the user means it; "" stays "".
std::string Resolve(const std::string& path) { return path.empty() ? "" : ResolvePath(path, UserFolder()); }

absl::StatusOr<SuiteOptions> OptionsFromFlags(const SuiteProgram& program, const std::string& scratch) {
  SuiteOptions options;
  options.topic = program.topic;
  options.quick = absl::GetFlag(FLAGS_quick);
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
  const double budget = absl::GetFlag(FLAGS_budget) > 0 ? absl::GetFlag(FLAGS_budget) : program.budget_s;
  options.budget_s = options.quick ? std::min(budget, 2.0) : budget;
  options.progress = [start = std::chrono::steady_clock::now()](absl::string_view line) {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start;
    absl::FPrintF(stderr, "[%4.0f s] %s\n", since.count(), line);
  };
  return options;
}

std::string Text(const Row& row, absl::string_view field) {
  const std::string* text = std::get_if<std::string>(&row.Get(field));
  return text == nullptr ? "" : *text;
}
std::string Ratio(const Row& row, absl::string_view field) {
  const double ratio = row.Number(field);
  return ratio == 0 ? "" : absl::StrFormat("%.2f", ratio);
}

/// Columns of the topic only.
std::vector<Column> FlatColumns() {
  return {{"flat", [](const Row& row) { return TimeText(row.Number("flat_us")); }},
          {"vs flat", [](const Row& row) { return Ratio(row, "vs_flat"); }}};
}

std::vector<Column> Columns(Topic topic) {
  std::vector<Column> columns = {
      {"case",
       [](const Row& row) {
         return absl::StrCat(Text(row, "case"), Text(row, "call").empty() ? "" : " ", Text(row, "call"));
       }},
      {"ranks", [](const Row& row) { return absl::StrCat(row.Number("ranks")); }},
      {"N",
       [](const Row& row) {
         const std::string list = Text(row, "list");
         return list.empty() ? CountText(static_cast<int64_t>(row.Number("n"))) : list;
       }},
      {"dtype", [](const Row& row) { return Text(row, "dtype"); }},
      {"ours", [](const Row& row) { return TimeText(row.Number("ours_us")); }},
      {"+-",
       [](const Row& row) {
         const double ours = row.Number("ours_us"), width = row.Number("ours_high_us") - row.Number("ours_low_us");
         return ours == 0 ? "" : absl::StrFormat("%.0f %%", 50 * width / ours);
       }},
      {"baseline", [](const Row& row) { return TimeText(row.Number("baseline_us")); }},
      {"ratio", [](const Row& row) { return Ratio(row, "ratio"); }},
      {"vs default", [](const Row& row) { return Ratio(row, "vs_default"); }},
      {"limit", [](const Row& row) { return TimeText(row.Number("limit_us")); }},
      {"of limit", [](const Row& row) { return Ratio(row, "of_limit"); }},
      {"bar", [](const Row& row) { return Text(row, "bar"); }},
      {"met",
       [](const Row& row) {
         const std::string missed = Text(row, "missed");
         return Text(row, "bar").empty() ? "" : missed.empty() ? "yes" : absl::StrCat("no: ", missed);
       }},
      {"variant",
       [](const Row& row) {
         const std::string error = Text(row, "error");
         return error.empty() ? Text(row, "variant") : absl::StrCat("FAILED: ", error.substr(0, error.find('\n')));
       }},
  };
  if (topic == Topic::kLists) {
    const std::vector<Column> flat = FlatColumns();
    const auto before = absl::c_find_if(columns, [](const Column& column) { return column.title == "limit"; });
    columns.insert(before, flat.begin(), flat.end());
  }
  return columns;
}

absl::Status RunAll(const SuiteOptions& options) {
  const std::vector<Column> columns = Columns(options.topic);
  Suite suite(options);
  const absl::Status status = suite.Run();
  // What was measured before an interruption is kept.
  absl::PrintF("%s", Table(suite.rows(), columns));
  if (const std::string json = Resolve(absl::GetFlag(FLAGS_json)); !json.empty()) {
    RETURN_IF_ERROR(WriteFile(json, Json(suite.rows())));
  }
  if (const std::string markdown = Resolve(absl::GetFlag(FLAGS_markdown)); !markdown.empty()) {
    RETURN_IF_ERROR(WriteFile(markdown, MarkdownTable(suite.rows(), columns)));
  }
  RETURN_IF_ERROR(status);
  const auto failed = absl::c_count_if(suite.rows(), [](const Row& row) { return !Text(row, "error").empty(); });
  return failed == 0 ? absl::OkStatus()
                     : absl::InternalError(absl::StrCat(failed, " of ", suite.rows().size(), " rows failed"));
}

int Fail(const SuiteProgram& program, const absl::Status& status) {
  absl::FPrintF(stderr, "%s: %s\n", program.name, status.message());
  return absl::IsInvalidArgument(status) ? kUsage : kFailed;
}

}  // namespace

int SuiteMain(const SuiteProgram& program, int argc, char** argv) {
  const absl::StatusOr<std::optional<WorkerOptions>> worker =
      WorkerOptionsFrom(absl::MakeSpan(argv + 1, static_cast<size_t>(argc - 1)));
  if (!worker.ok()) return Fail(program, worker.status());
  if (worker->has_value()) {
    const absl::Status status = Work(**worker);
    return status.ok() ? kOk : Fail(program, status);
  }
  absl::SetProgramUsageMessage(program.usage);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1)
    return Fail(program, absl::InvalidArgumentError(absl::StrCat("unknown argument ", rest[1], " (see --help)")));
  const absl::StatusOr<std::unique_ptr<TempDir>> scratch = TempDir::Make();
  if (!scratch.ok()) return Fail(program, scratch.status());
  const absl::StatusOr<SuiteOptions> options = OptionsFromFlags(program, (*scratch)->path());
  if (!options.ok()) return Fail(program, options.status());
  const absl::Status status = RunAll(*options);
  return status.ok() ? kOk : Fail(program, status);
}

}  // namespace coconet::bench
