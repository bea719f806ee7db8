// Prints how far predicted times of whole iterations are from measured ones, on two nodes whose
// links are as fast as their computation, twice as fast, and half as fast.

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "autotune/calibrate/calibrate.h"
#include "autotune/calibrate/stopwatch.h"
#include "autotune/calibrate/timed_program.h"
#include "autotune/cost/measured_cost_model.h"
#include "autotune/runner/rank_runner.h"
#include "bench/harness/finding.h"
#include "bench/harness/launch.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/harness/worker.h"
#include "bench/iteration/drawn_plans.h"
#include "bench/iteration/model_flags.h"
#include "bench/iteration/numbers.h"
#include "bench/iteration/on_nodes.h"
#include "bench/nodes/cluster_link.h"
#include "coconet/base/status.h"
#include "jit/compile/temp_dir.h"
#include "runtime/world.h"

ABSL_FLAG(std::string, c, "0.5,1,2", "communication over computation, comma-separated");
ABSL_FLAG(int, plans, 20, "at each c");
ABSL_FLAG(uint64_t, seed, 1, "of the plans");
ABSL_FLAG(double, search, 5, "seconds of the search for the best plan");

namespace coconet::bench {
namespace {

/// What a worker measures: the plans of a model's step.
struct PlansCase {
  GptModel model;
  int plans = 0;
  uint64_t seed = 0;
  double search_s = 0;     // of the search for the best plan
  std::string cache = {};  // the folder of compiled kernels

  static void VisitFields(auto& c, auto visit) {
    visit("model.layers", c.model.layers);
    visit("model.width", c.model.width);
    visit("model.heads", c.model.heads);
    visit("model.vocabulary", c.model.vocabulary);
    visit("model.sequence", c.model.sequence);
    visit("model.examples", c.model.examples);
    visit("plans", c.plans);
    visit("seed", c.seed);
    visit("search_s", c.search_s);
    visit("cache", c.cache);
  }
};

/// Collective: rank 0's plans, of which all ranks replay the traces.
absl::StatusOr<std::vector<PlannedSchedule>> PlansOfRank0(Rank& rank, const PlansCase& c,
                                                          const Graph& step,
                                                          const CostModel& model) {
  std::vector<PlannedSchedule> plans;
  std::string text;
  if (rank.rank() == 0) {
    ASSIGN_OR_RETURN(plans, DrawPlans(step, TargetOf(rank), model, c.plans, c.search_s, c.seed));
    for (const PlannedSchedule& plan : plans)
      absl::StrAppend(&text, TraceText(plan.schedule.trace()), "\n");
  }
  ASSIGN_OR_RETURN(text, rank.exchange().Broadcast(text));
  if (rank.rank() == 0) return plans;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    ASSIGN_OR_RETURN(const std::vector<Transformation> trace, ParseTrace(line));
    ASSIGN_OR_RETURN(plans.emplace_back().schedule, Replay(step, trace));
  }
  return plans;
}

/// Collective: the plans' times, predicted and measured.
absl::StatusOr<std::vector<Finding>> MeasurePlans(Rank& rank, const PlansCase& c) {
  ASSIGN_OR_RETURN(const Graph step, GptStep(c.model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> binaries,
                   Binaries::Open(rank, {.target = BinaryTarget("", 0),
                                         .cache_dir = c.cache,
                                         .compiler =
                                             [&] {
                                               return MakeCompilerFor(/*arch=*/"",
                                                                      /*simulated=*/false,
                                                                      {.cache_dir = c.cache});
                                             },
                                         .warn = [](absl::string_view) {}}));
  ASSIGN_OR_RETURN(const Schedule plain, InitialSchedule(step));
  ASSIGN_OR_RETURN(
      const Rates rates,
      Calibrate(rank, *binaries, {.products = DistinctProducts(plain, TargetOf(rank))}));
  const MeasuredCostModel model(rates);
  ASSIGN_OR_RETURN(const std::vector<PlannedSchedule> plans, PlansOfRank0(rank, c, step, model));
  ASSIGN_OR_RETURN(Config config, PlainConfig(rank));
  config.concurrent = true;
  std::vector<Lowered> lowered;
  std::vector<KernelSource> sources;
  for (const PlannedSchedule& plan : plans) {
    ASSIGN_OR_RETURN(lowered.emplace_back(), Lower(plan.schedule, config, TargetOf(rank)));
    sources.push_back(lowered.back().kernels);
  }
  ASSIGN_OR_RETURN(const std::vector<absl::StatusOr<std::string>> paths,
                   binaries->Compile(sources, {}));
  std::vector<TimedPlan> timed;
  for (size_t i = 0; i < plans.size(); ++i) {
    RETURN_IF_ERROR(paths[i].status());
    ASSIGN_OR_RETURN(Binaries::Loaded loaded, binaries->Load(*paths[i], sources[i]));
    RETURN_IF_ERROR(loaded.status);
    timed.push_back({&lowered[i].plan, std::move(loaded.module), RowsOf(plain.program())});
  }
  ASSIGN_OR_RETURN(Stopwatch stopwatch, Stopwatch::Create(rank, std::move(timed)));
  std::vector<Finding> found;
  for (size_t i = 0; i < plans.size(); ++i) {
    ASSIGN_OR_RETURN(const double us, stopwatch.Time(i, {}));
    Finding& finding = found.emplace_back();
    finding.side = "plan";
    finding.name = absl::StrCat(i);
    finding.timing.median_us = us;
    finding.detail = absl::StrCat(plans[i].us);
  }
  found.push_back({.side = "rates", .detail = Json(rates)});
  return found;
}

const Worker<PlansCase> kWorker("plans", MeasurePlans);

/// Ranks of values, equal ones the mean of theirs.
std::vector<double> RanksOf(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (double value : values) {
    const auto less = absl::c_count_if(values, [&](double v) { return v < value; });
    const auto equal = absl::c_count(values, value);
    ranks.push_back(static_cast<double>(less) + 0.5 * static_cast<double>(equal - 1));
  }
  return ranks;
}

/// Spearman's rank correlation.
double RankCorrelation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = RanksOf(a), y = RanksOf(b);
  const double mean = 0.5 * static_cast<double>(x.size() - 1);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx * yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

struct Times {
  std::vector<double> predicted, measured;
};

/// Sets how near the predictions are.
void SetErrors(const Times& times, Row& row) {
  std::vector<double> errors;
  for (size_t i = 0; i < times.predicted.size(); ++i)
    errors.push_back(std::fabs(times.predicted[i] / times.measured[i] - 1));
  absl::c_sort(errors);
  row.Set("plans", static_cast<int64_t>(errors.size()));
  if (errors.empty()) return;
  row.Set("median_error", errors[errors.size() / 2]).Set("largest_error", errors.back());
  row.Set("best_us", *absl::c_min_element(times.measured));
  row.Set("worst_us", *absl::c_max_element(times.measured));
}

/// The plans at one c, appended to `all`.
absl::Status MeasureAt(double c, const GptModel& model, const std::string& scratch, Times& all,
                       Row& row) {
  constexpr int kNodes = 2;
  const std::vector<std::string> parts_only =
      Arguments(NodesCase{.model = model,
                          .seconds = 4,
                          .budget_s = TuningBudget(/*usual=*/30, /*quick=*/10),
                          .parts_only = true});
  const std::vector<std::string> plans =
      kWorker.Arguments({.model = model,
                         .plans = IsQuick() ? 3 : absl::GetFlag(FLAGS_plans),
                         .seed = absl::GetFlag(FLAGS_seed),
                         .search_s = IsQuick() ? 0.5 : absl::GetFlag(FLAGS_search),
                         .cache = scratch + "/kernels"});
  const auto run = [&](const std::string& rate, const std::vector<std::string>& arguments) {
    return RunWorker({.processes = kNodes,
                      .launcher = ClusterLauncher(kNodes, /*ranks_per_node=*/1, rate),
                      .arguments = arguments,
                      .environment = {absl::StrCat("COCONET_CACHE_DIR=", scratch, "/parts")},
                      .scratch = scratch});
  };
  ASSIGN_OR_RETURN(const std::vector<Finding> first, run("none", parts_only));
  const auto parts_of = [](const std::vector<Finding>& found) {
    return StepParts{.computation_us = FastestOf(found, "computation")->timing.median_us,
                     .sending_us = FastestOf(found, "sending")->timing.median_us};
  };
  const auto parts_at = [&](const std::string& rate) -> absl::StatusOr<StepParts> {
    if (rate == "none") return parts_of(first);
    ASSIGN_OR_RETURN(const std::vector<Finding> found, run(rate, parts_only));
    return parts_of(found);
  };
  const WantedShare wanted = IsQuick() ? WantedShare{.least = 0, .most = 1e9}
                                       : WantedShare{.least = 0.8 * c, .most = 1.25 * c, .aim = c};
  ASSIGN_OR_RETURN(const LinkRate link, ChooseLinkRate(CountOf(first, "bytes"), wanted, parts_at));
  row.Set("link", link.rate).Set("share", link.parts.share());
  ASSIGN_OR_RETURN(const std::vector<Finding> found, run(link.rate, plans));
  Times here;
  for (const Finding& finding : found) {
    double predicted = 0;
    if (finding.side != "plan" || !absl::SimpleAtod(finding.detail, &predicted)) continue;
    here.predicted.push_back(predicted);
    here.measured.push_back(finding.timing.median_us);
  }
  row.Set("rates", JsonText{FactOf(found, "rates")});
  row.Set("rank_correlation", RankCorrelation(here.predicted, here.measured));
  SetErrors(here, row);
  absl::c_copy(here.predicted, std::back_inserter(all.predicted));
  absl::c_copy(here.measured, std::back_inserter(all.measured));
  return absl::OkStatus();
}

absl::Status RunAll() {
  const GptModel model = IsQuick() ? QuickModel() : ModelOfFlags();
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  std::vector<Row> rows;
  Times all;
  double correlations = 0;
  for (absl::string_view text : absl::StrSplit(absl::GetFlag(FLAGS_c), ',')) {
    double c = 0;
    if (!absl::SimpleAtod(text, &c) || !(c > 0))
      return absl::InvalidArgumentError(absl::StrCat("--c: want positive numbers, have ", text));
    Row& row = rows.emplace_back();
    row.Set("case", absl::StrCat("c = ", text));
    row.Set("ranks", int64_t{2}).Set("layers", model.layers);
    row.Set("width", model.width).Set("tokens", model.tokens());
    AddMachine(row.Set("load_before", LoadAverage()));
    const absl::Status measured = MeasureAt(c, model, scratch->path(), all, row);
    if (!measured.ok()) row.Set("error", std::string(measured.message()));
    correlations += row.Number("rank_correlation");
  }
  Row& together = rows.emplace_back();
  together.Set("case", std::string("all"));
  SetErrors(all, together);
  together.Set("rank_correlation", correlations / static_cast<double>(rows.size() - 1));
  AddMachine(together);
  if (!IsQuick()) {
    together.SetBars({{"median_error", Bar::Side::kAtMost, 0.1},
                      {"rank_correlation", Bar::Side::kAtLeast, 0.9}});
  }
  const std::vector<Column> columns = ColumnsOf(
      "case, link, c|ratio|share, plans|%.0f, best|time, worst|time, median error|100*%.1f%%, "
      "rank correlation|ratio, bar, met, error");
  return Show(rows, columns);
}

const Registered kBenchmark(
    {.name = "plans",
     .usage = "compares predicted and measured times of plans of training steps; "
              "see bench/README.md\n\n"
              "  plans [--c=0.5,1,2] [--plans=20] [--seed=1] [--layers=4] "
              "[--width=256] [--budget=30] [--quick] [--json=FILE] "
              "[--markdown=FILE]",
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
