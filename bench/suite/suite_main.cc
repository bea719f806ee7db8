#include "bench/suite/suite.h"

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

std::vector<Column> Columns(Topic topic) {
  std::vector<Column> columns = ColumnsOf(
      "case|*, ranks, N|*, dtype, ours|time, +-|*, baseline|time, ratio|ratio, vs default|ratio, "
      "limit|time, of limit|ratio, bar, met, variant|result",
      {{"case",
        [](const Row& row) {
          return absl::StrCat(TextOf(row, "case"), TextOf(row, "call").empty() ? "" : " ",
                              TextOf(row, "call"));
        }},
       {"N",
        [](const Row& row) {
          const std::string list = TextOf(row, "list");
          return list.empty() ? CountText(static_cast<int64_t>(row.Number("n"))) : list;
        }},
       {"+-", [](const Row& row) {
          const double ours = row.Number("ours_us"),
                       width = row.Number("ours_high_us") - row.Number("ours_low_us");
          return ours == 0 ? "" : absl::StrFormat("%.0f %%", 50 * width / ours);
        }}});
  if (topic == Topic::kLists) {
    const auto before =
        absl::c_find_if(columns, [](const Column& column) { return column.title == "limit"; });
    const std::vector<Column> flat = ColumnsOf("flat|time, vs flat|ratio");
    columns.insert(before, flat.begin(), flat.end());
  }
  return columns;
}

}  // namespace

absl::Status RunSuite(const SuiteProgram& program) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  ASSIGN_OR_RETURN(const SuiteOptions options, OptionsFromFlags(program, scratch->path()));
  Suite suite(options);
  absl::Status status = suite.Run();
  // What was measured before an interruption is kept.
  status.Update(Show(suite.rows(), Columns(options.topic)));
  return status;
}

}  // namespace coconet::bench
