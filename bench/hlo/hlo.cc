// Training steps in HLO. plans: imports files and plans them, on simulated links. train: imports a
// GPT that JAX writes, trains it, and measures it beside XLA's own execution.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autotune/cost/nominal_cost_model.h"
#include "autotune/planning/plan_iteration.h"
#include "autotune/session/session.h"
#include "bench/harness/finding.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "bench/harness/user.h"
#include "bench/hlo/jax_step.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_import.h"
#include "coconet/hlo/text/hlo_parser.h"
#include "runtime/world.h"

ABSL_FLAG(std::vector<std::string>, cases, std::vector<std::string>({"plans", "train"}),
          "comma-separated");
ABSL_FLAG(std::vector<std::string>, files, {},
          "of plans: .hlo files and folders of them, comma-separated");
ABSL_FLAG(double, seconds, 10, "of the search for a plan");
ABSL_FLAG(std::string, jax, "", "of train: a Python interpreter that has JAX");
ABSL_FLAG(std::vector<std::string>, ranks, std::vector<std::string>({"2", "4"}),
          "of train, comma-separated");

namespace coconet::bench {
namespace {

namespace fs = std::filesystem;

/// Forgets the most memory that this process had so far.
void ResetPeakMemory() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// The most memory that this process had since ResetPeakMemory, in MiB.
double PeakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar("\t "), absl::SkipEmpty());
    double kib = 0;
    if (words.size() > 1 && words[0] == "VmHWM:" && absl::SimpleAtod(words[1], &kib))
      return kib / 1024;
  }
  return 0;
}

/// The share of all operations but convolutions that a program has.
double ExecutableShare(const ImportedHlo& imported) {
  int64_t convolutions = 0, opaque = 0;
  for (const auto& [what, count] : imported.opaque)
    (absl::StartsWith(what, "convolution") ? convolutions : opaque) += count;
  return 1 - static_cast<double>(opaque) / static_cast<double>(imported.operations - convolutions);
}

/// Imports a module in HLO and plans it for as many H100 as it was written for, with links of 100
/// Gbit/s: seconds, memory, the share of operations that a program has, and how far the plan is
/// from its bound and from what XLA does.
absl::Status MeasurePlan(const std::string& file, Row& row) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat(file, ": cannot be read"));
  std::string text((std::istreambuf_iterator<char>(in)), {});
  ResetPeakMemory();
  const double begin_s = SecondsNow();
  ASSIGN_OR_RETURN(const HloModule module, ParseHlo(std::move(text)));
  ASSIGN_OR_RETURN(const ImportedHlo imported, ImportHlo(module, {.for_planning = true}));
  row.Set("import_s", SecondsNow() - begin_s).Set("ranks", imported.partitions);
  row.Set("instructions", imported.operations).Set("executable", ExecutableShare(imported));
  row.Set("opaque", absl::StrJoin(imported.opaque, ", ", [](std::string* out, const auto& of) {
            absl::StrAppend(out, of.second, " x ", of.first);
          }));
  ASSIGN_OR_RETURN(NominalRates rates, NominalRatesOf("h100"));
  rates.ranks = static_cast<int>(imported.partitions);
  rates.SetLink(100);
  const NominalCostModel model(rates);
  const double seconds = IsQuick() ? 0.3 : absl::GetFlag(FLAGS_seconds);
  ASSIGN_OR_RETURN(
      const PlannedIteration planned,
      PlanIteration(imported.program, Target(rates.ranks), model, {.seconds = seconds}));
  row.Set("seconds", SecondsNow() - begin_s).Set("memory_mib", PeakMemory());
  row.Set("operations", int64_t{planned.operations}).Set("launches", int64_t{planned.launches});
  row.Set("evaluations", planned.evaluations).Set("us", planned.found.us);
  row.Set("bound_us", planned.found.bound_us).Set("xla_us", planned.combined.us);
  row.Set("over_bound", planned.found.us / planned.found.bound_us);
  row.Set("over_xla", planned.found.us / planned.combined.us);
  return absl::OkStatus();
}

absl::Status MeasureOurs(Rank& rank, const JaxStep& step, double budget_s, Row& row) {
  SessionOptions options;
  options.budget_s = budget_s;
  options.cache_file = ":none:";
  Session session(rank, options);
  ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(step.imported.program));
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
  RETURN_IF_ERROR(TrainAsJax(step, rank.rank(), bound));
  ASSIGN_OR_RETURN(const std::vector<Finding> measured,
                   MeasureInRounds(rank, {EachStep("ours", [&] { return bound.Run(); })},
                                   {.seconds = IsQuick() ? 0.3 : 10}));
  if (rank.rank() != 0) return absl::OkStatus();
  const TuningRecord& record = tuned.record();
  row.Set("variants", int64_t{record.variants}).Set("tried", int64_t{record.search.tried});
  row.Set("variant", Words(record.best));
  SetTime(row, "ours", measured[0].timing);
  return absl::OkStatus();
}

/// A GPT's training step as JAX writes it, on `ranks` ranks: trained for 20 steps beside JAX, then
/// timed, and XLA's own execution timed after it.
absl::Status MeasureTraining(int ranks, const std::string& scratch, Row& row) {
  const std::string python = absl::GetFlag(FLAGS_jax);
  if (python.empty()) return absl::UnavailableError("no --jax=PYTHON");
  std::vector<std::string> sizes = {absl::StrCat("--ranks=", ranks)};
  if (!IsQuick()) {
    sizes.insert(sizes.end(), {"--layers=4", "--width=384", "--heads=6", "--vocabulary=1000",
                               "--length=64", "--examples=4"});
  }
  ASSIGN_OR_RETURN(const JaxStep step, JaxStep::Make(python, scratch, sizes));
  for (const char* name : {"layers", "width", "vocabulary"}) row.Set(name, step.Size(name));
  row.Set("tokens", step.Size("length") * step.Size("examples"));
  row.Set("operations", int64_t{step.imported.program.size()});
  const double budget_s = TuningBudget(/*usual=*/90, /*quick=*/10);
  row.Set("budget_s", budget_s);
  RETURN_IF_ERROR(RunWorld({.ranks = ranks},
                           [&](Rank& rank) { return MeasureOurs(rank, step, budget_s, row); }));
  ASSIGN_OR_RETURN(const std::vector<Finding> compared, step.Run("compare"));
  row.Set("compared", FactOf(compared, "compared"));
  ASSIGN_OR_RETURN(const std::vector<Finding> xla,
                   step.Run("time", {absl::StrCat("--seconds=", IsQuick() ? 0.3 : 10)}));
  row.Set("jax", FactOf(xla, "version"));
  SetTime(row, "baseline", FastestOf(xla, "baseline")->timing);
  row.Set("ratio", row.Number("baseline_us") / row.Number("ours_us"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Files() {
  std::vector<std::string> files;
  for (const std::string& name : absl::GetFlag(FLAGS_files)) {
    const std::string path = Resolve(name);
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> in_folder;
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".hlo") in_folder.push_back(entry.path().string());
    }
    absl::c_sort(in_folder);
    absl::c_copy(in_folder, std::back_inserter(files));
  }
  if (files.empty())
    return absl::InvalidArgumentError("plans: want --files=FILE.hlo,FOLDER, have none");
  return files;
}

/// Sets the row's bars or, if the measurement was Unavailable, why it is absent.
absl::Status Judged(const absl::Status& measured, absl::string_view bars, Row& row) {
  if (absl::IsUnavailable(measured)) {
    row.Set("compared", absl::StrCat("absent: ", measured.message()));
    return absl::OkStatus();
  }
  if (!IsQuick()) row.SetBars(BarsOf(bars));
  return measured;
}

absl::Status RunAll() {
  const std::vector<std::string> cases = absl::GetFlag(FLAGS_cases);
  std::vector<RowTask> tasks;
  if (absl::c_linear_search(cases, "plans")) {
    ASSIGN_OR_RETURN(const std::vector<std::string> files, Files());
    for (const std::string& file : files) {
      const std::string name = fs::path(file).stem();
      const auto measure = [file](const std::string& /*scratch*/, Row& row) {
        return Judged(MeasurePlan(file, row),
                      "executable >= 0.95, seconds <= 60, memory_mib <= 4096, over_bound <= 1.05, "
                      "over_xla <= 1",
                      row);
      };
      tasks.push_back({.words = name, .row = Row().Set("case", name), .measure = measure});
    }
  }
  if (absl::c_linear_search(cases, "train")) {
    for (const int ranks : IntegersOf(absl::GetFlag(FLAGS_ranks))) {
      const auto measure = [ranks](const std::string& scratch, Row& row) {
        return Judged(MeasureTraining(ranks, scratch, row), "ratio >= 1.3", row);
      };
      tasks.push_back({.words = absl::StrCat("gpt of JAX on ", ranks, " ranks"),
                       .row = Row().Set("case", "gpt of JAX").Set("ranks", ranks),
                       .measure = measure});
    }
  }
  const std::vector<Column> columns = ColumnsOf(
      "case|result, ranks|%.0f, operations|%.0f, executable|ratio, import|s|import_s, "
      "with plan|s|seconds, MiB|%.0f|memory_mib, simulated|time|us, over bound|%.4f, "
      "over XLA's|%.4f|over_xla, ours|time, XLA|time|baseline_us, ratio|ratio, met, compared");
  return MeasureRows(tasks, columns);
}

const Registered kBenchmark({.name = "hlo",
                             .purpose = "imports, plans and runs training steps in HLO",
                             .heeds = {"quick", "budget"},
                             .positive = {"ranks"},
                             .words = {{"cases", "plans, train"}},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
