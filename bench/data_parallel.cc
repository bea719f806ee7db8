// Data-parallel optimizers: ours against what a careful user writes with MPI, and against what the memory can do.
// README.md in this folder says what the rows mean.
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
#include "bench/suite.h"
#include "bench/worker.h"
#include "coconet/base/status.h"
#include "jit/temp_dir.h"

ABSL_FLAG(std::string, json, "", "write the rows to this file");
ABSL_FLAG(std::string, markdown, "", "write the table to this file");
ABSL_FLAG(bool, quick, false, "small sizes, few rounds: does it work? (the times say little)");
ABSL_FLAG(std::vector<std::string>, case, {}, "only these cases, comma-separated");
ABSL_FLAG(std::vector<std::string>, N, {}, "adam at these sizes: 1Ki,16Mi");
ABSL_FLAG(std::string, cache, "", "folder of tuned programs and compiled kernels to use; default: a new one");
ABSL_FLAG(double, budget, 20, "seconds of tuning one program");

namespace coconet::bench {
namespace {

constexpr int kOk = 0, kFailed = 1, kUsage = 2;

/// A file's or folder's path as the user means it; "" stays "".
std::string Resolve(const std::string& path) { return path.empty() ? "" : ResolvePath(path, UserFolder()); }

absl::StatusOr<SuiteOptions> OptionsFromFlags(const std::string& scratch) {
  SuiteOptions options;
  options.quick = absl::GetFlag(FLAGS_quick);
  options.cases = absl::GetFlag(FLAGS_case);
  const std::vector<std::string> known = Suite::Cases();
  for (const std::string& name : options.cases) {
    if (!absl::c_linear_search(known, name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--case: no case \"", name, "\"; there are ", absl::StrJoin(known, ", ")));
    }
  }
  for (const std::string& text : absl::GetFlag(FLAGS_N)) {
    const absl::StatusOr<int64_t> size = ParseSize(text);
    if (!size.ok() || *size == 0) {
      return absl::InvalidArgumentError(absl::StrCat("--N: want a size such as 4096 or 16Mi, have \"", text, "\""));
    }
    options.sizes.push_back(*size);
  }
  options.cache_dir = Resolve(absl::GetFlag(FLAGS_cache));
  options.scratch = scratch;
  options.budget_s = options.quick ? std::min(absl::GetFlag(FLAGS_budget), 2.0) : absl::GetFlag(FLAGS_budget);
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

const std::vector<Column>& Columns() {
  static const auto& columns = *new std::vector<Column>{
      {"case",
       [](const Row& row) {
         return absl::StrCat(Text(row, "case"), Text(row, "call").empty() ? "" : " ", Text(row, "call"));
       }},
      {"ranks", [](const Row& row) { return absl::StrCat(row.Number("ranks")); }},
      {"N", [](const Row& row) { return CountText(static_cast<int64_t>(row.Number("n"))); }},
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
  return columns;
}

absl::Status RunAll(const SuiteOptions& options) {
  Suite suite(options);
  const absl::Status status = suite.Run();
  // What was measured before an interruption is kept.
  absl::PrintF("%s", Table(suite.rows(), Columns()));
  if (const std::string json = Resolve(absl::GetFlag(FLAGS_json)); !json.empty()) {
    RETURN_IF_ERROR(WriteFile(json, Json(suite.rows())));
  }
  if (const std::string markdown = Resolve(absl::GetFlag(FLAGS_markdown)); !markdown.empty()) {
    RETURN_IF_ERROR(WriteFile(markdown, MarkdownTable(suite.rows(), Columns())));
  }
  RETURN_IF_ERROR(status);
  const auto failed = absl::c_count_if(suite.rows(), [](const Row& row) { return !Text(row, "error").empty(); });
  return failed == 0 ? absl::OkStatus()
                     : absl::InternalError(absl::StrCat(failed, " of ", suite.rows().size(), " rows failed"));
}

int Fail(const absl::Status& status) {
  absl::FPrintF(stderr, "data_parallel: %s\n", status.message());
  return absl::IsInvalidArgument(status) ? kUsage : kFailed;
}

int Main(int argc, char** argv) {
  const absl::StatusOr<std::optional<WorkerOptions>> worker =
      WorkerOptionsFrom(absl::MakeSpan(argv + 1, static_cast<size_t>(argc - 1)));
  if (!worker.ok()) return Fail(worker.status());
  if (worker->has_value()) {
    const absl::Status status = Work(**worker);
    return status.ok() ? kOk : Fail(status);
  }
  absl::SetProgramUsageMessage(
      "measures data-parallel optimizers; see bench/README.md\n\n  data_parallel [--json=FILE] [--quick] "
      "[--case=adam,dispatch]");
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1)
    return Fail(absl::InvalidArgumentError(absl::StrCat("unknown argument ", rest[1], " (see --help)")));
  const absl::StatusOr<std::unique_ptr<TempDir>> scratch = TempDir::Make();
  if (!scratch.ok()) return Fail(scratch.status());
  const absl::StatusOr<SuiteOptions> options = OptionsFromFlags((*scratch)->path());
  if (!options.ok()) return Fail(options.status());
  const absl::Status status = RunAll(*options);
  return status.ok() ? kOk : Fail(status);
}

}  // namespace
}  // namespace coconet::bench

int main(int argc, char** argv) { return coconet::bench::Main(argc, argv); }
