// A layer's product, its sum over ranks and its epilogue: ours against oneDNN, MPI and a fused
// loop. bench/README.md explains the rows.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/baselines/mpi_settings.h"
#include "bench/harness/finding.h"
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

/// Tries all MPI settings shortly, and the defaults and the two that look best for longer.
absl::Status MeasureCase(ModelCase c, const std::string& scratch, Row& row) {
  const double part = IsQuick() ? 0.1 : 1;
  c.seconds = 0.6 * part;
  ASSIGN_OR_RETURN(
      std::vector<MpiSetting> tried,
      TrySettings(MpiSettings(/*crowded=*/false, IsQuick()), kRanks, Arguments(c), scratch));
  KeepFastest(tried, 3, row);
  c.seconds = 6 * part;
  ASSIGN_OR_RETURN(tried, TrySettings(std::move(tried), kRanks, Arguments(c), scratch));
  const MpiSetting& best = FastestOf(tried);
  SetFindings(row, best.found);
  const double ours_us = row.Number("ours_us");
  row.Set("vs_default", tried[0].us / FastestOf(tried[0].found, "ours")->timing.median_us);
  row.Set("ratio", row.Number("baseline_us") / ours_us).Set("mpi_setting", best.name);
  row.Set("vs_packed", row.Number("baseline_packed_us") / ours_us);
  row.Set("of_limit", (row.Number("product_us") + row.Number("rest_us")) / ours_us);
  row.Set("ours_variant", row.Get("variant"));
  return absl::OkStatus();
}

absl::Status Run() {
  std::vector<RowTask> tasks;
  for (const EpilogueCase& c : Cases()) {
    tasks.push_back(
        {absl::StrCat(c.name, ", ", Name(c.what.dtype)),
         NewModelRow(c.name, c.what, kRanks, "processes"),
         [c](const std::string& scratch, Row& row) { return MeasureCase(c.what, scratch, row); },
         c.bar});
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
