// A layer's product, its sum over ranks and its epilogue: ours against oneDNN, MPI and a fused
// loop. bench/README.md explains the rows.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/baselines/mpi_settings.h"
#include "bench/harness/finding.h"
#include "bench/harness/launch.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/layers/model_cases.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr int kRanks = 2;

struct EpilogueCase {
  const char* name;
  ModelCase what;
  const char* bar;
};

std::vector<EpilogueCase> Cases() {
  const bool quick = IsQuick();
  const auto sizes = [&](int64_t k_of_h) {
    const int64_t hidden = quick ? 128 : 1024;
    return Sizes{{"B", 1}, {"S", quick ? 64 : 512}, {"H", hidden}, {"K", k_of_h * hidden}};
  };
  std::vector<EpilogueCase> cases = {
      {"attention", {.dtype = DType::kF32, .sizes = sizes(1)}, "ratio >= 1.05"},
      {"attention", {.dtype = DType::kBF16, .sizes = sizes(1)}, "ratio >= 1.5"},
      {"mlp", {.dtype = DType::kF32, .sizes = sizes(4)}, "of_limit >= 0.95"},
      {"mlp", {.dtype = DType::kBF16, .sizes = sizes(4)}, "of_limit >= 0.95"},
  };
  for (EpilogueCase& c : cases) {
    c.what.kind = ModelCase::Kind::kEpilogue;
    c.what.budget_s = TuningBudget(/*usual=*/40, /*quick=*/5);
  }
  return cases;
}

/// Measures in a launch with this MPI setting. The first launch tunes ours; later ones find it in
/// the cache.
absl::StatusOr<std::vector<Finding>> Measure(ModelCase c, const MpiSetting& setting, double seconds,
                                             const std::string& scratch) {
  c.seconds = IsQuick() ? seconds / 10 : seconds;
  return RunWorker({.processes = kRanks,
                    .parameters = setting.parameters,
                    .arguments = Arguments(c),
                    .cache = absl::StrCat(scratch, "/cache"),
                    .scratch = scratch});
}

/// The defaults and the two settings that look best.
absl::StatusOr<std::vector<MpiTrial>> Screen(const EpilogueCase& c, const std::string& scratch,
                                             Row& row) {
  std::vector<MpiTrial> trials;
  for (const MpiSetting& setting : MpiSettings(/*crowded=*/false, IsQuick())) {
    const absl::StatusOr<std::vector<Finding>> found = Measure(c.what, setting, 0.6, scratch);
    if (!found.ok() && (trials.empty() || absl::IsCancelled(found.status())))
      return found.status();  // the defaults come first
    if (found.ok()) trials.push_back({setting, FastestOf(*found, "baseline")->timing.median_us});
  }
  KeepFastest(trials, 3, row);
  return trials;
}

absl::Status MeasureCase(const EpilogueCase& c, const std::string& scratch, Row& row) {
  ASSIGN_OR_RETURN(const std::vector<MpiTrial> trials, Screen(c, scratch, row));
  double best_us = 0;
  for (const MpiTrial& trial : trials) {
    ASSIGN_OR_RETURN(const std::vector<Finding> found, Measure(c.what, trial.setting, 6, scratch));
    const double baseline_us = FastestOf(found, "baseline")->timing.median_us,
                 ours_us = FastestOf(found, "ours")->timing.median_us;
    if (trial.setting.parameters.empty()) row.Set("vs_default", baseline_us / ours_us);
    if (best_us != 0 && best_us <= baseline_us) continue;
    best_us = baseline_us;
    SetSides(row, found);
    row.Set("ratio", baseline_us / ours_us).Set("mpi_setting", trial.setting.name);
    row.Set("vs_packed", row.Number("baseline_packed_us") / ours_us);
    row.Set("of_limit", (row.Number("product_us") + row.Number("rest_us")) / ours_us);
  }
  if (!IsQuick()) row.SetBars(BarsOf(c.bar));
  return absl::OkStatus();
}

absl::Status Run() {
  std::vector<RowTask> tasks;
  for (const EpilogueCase& c : Cases()) {
    tasks.push_back(
        {absl::StrCat(c.name, ", ", Name(c.what.dtype)),
         NewModelRow(c.name, c.what, kRanks, "processes"),
         [c](const std::string& scratch, Row& row) { return MeasureCase(c, scratch, row); }});
  }
  return MeasureRows(
      tasks,
      ColumnsOf("case, dtype, sizes, ours|time, baseline|time, ratio|ratio, vs default|ratio, "
                "vs packed|ratio, product|time, rest|time, of limit|ratio, bar, met, "
                "variant|result|ours_variant"));
}

const Registered kBenchmark({.name = "model_parallel",
                             .purpose = "measures layers of model parallelism",
                             .heeds = {"quick", "budget"},
                             .run = Run});

}  // namespace
}  // namespace coconet::bench
