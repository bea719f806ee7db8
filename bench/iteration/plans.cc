// Prints how far predicted times of whole iterations are from measured ones, on two nodes whose
// links are as fast as their computation, twice as fast, and half as fast.

#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autotune/calibrate/calibrate.h"
#include "autotune/calibrate/stopwatch.h"
#include "autotune/calibrate/timed_program.h"
#include "autotune/cost/measured_cost_model.h"
#include "autotune/planning/first_plan.h"
#include "autotune/planning/plan_graph.h"
#include "autotune/planning/planned_schedules.h"
#include "autotune/runner/binaries.h"
#include "autotune/runner/rank_runner.h"
#include "bench/harness/finding.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/harness/worker.h"
#include "bench/iteration/on_nodes.h"
#include "bench/iteration/step.h"
#include "bench/nodes/node_row.h"
#include "coconet/base/status.h"
#include "coconet/workloads/training_steps.h"

ABSL_FLAG(std::string, c, "0.5,1,2", "communication over computation, comma-separated");
ABSL_FLAG(int, plans, 20, "at each c");
ABSL_FLAG(uint64_t, seed, 1, "of the plans");
ABSL_FLAG(double, search, 5, "seconds of the search for the best plan");

namespace coconet::bench {
namespace {

/// Draws plans by random edits of kernels, buckets and order.
class Drawing {
 public:
  Drawing(const PlanGraph& graph, uint64_t seed) : graph_(graph), random_(seed) {}

  /// A plan that 1 to 256 edits make of `from`, as accepted.
  IterationPlan From(const IterationPlan& from) {
    IterationPlan plan = from;
    const int64_t edits = int64_t{1} << Below(9);
    for (int64_t i = 0; i < edits; ++i) {
      if (!Edit(plan) || !(plan.Us() < kMost))
        plan.Undo();
      else
        plan.Accept();
    }
    plan.Accept();
    return plan;
  }

 private:
  /// An upper bound of the time of a plan whose lanes do not wait for each other.
  static constexpr double kMost = 1e12;

  int Below(size_t n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  bool Edit(IterationPlan& plan) {
    const int drawn = Below(5);
    if (drawn == 0) return JoinBuckets(plan);
    if (drawn <= 2) return Detach(plan, /*lane=*/2 - drawn);
    return drawn == 3 ? JoinKernels(plan) : Move(plan);
  }

  bool JoinBuckets(IterationPlan& plan) {
    const std::vector<int>& order = plan.order(1);
    if (order.size() < 2) return false;
    const int at = Below(order.size() - 1);
    return plan.Merge(order[at], order[at + 1]);
  }

  bool JoinKernels(IterationPlan& plan) {
    const int item = Below(graph_.size());
    const std::vector<int>& before = graph_[item].after;
    if (before.empty() || graph_.IsCollective(item)) return false;
    const int other = before[Below(before.size())];
    if (graph_.IsCollective(other) || plan.group_of(other) == plan.group_of(item)) return false;
    return plan.Merge(plan.group_of(item), plan.group_of(other));
  }

  bool Detach(IterationPlan& plan, int lane) {
    const std::vector<int>& order = plan.order(lane);
    if (order.empty()) return false;
    const int group = order[Below(order.size())];
    std::vector<int> items = plan.group(group).items;
    if (items.size() < 2) return false;
    items.resize(1 + Below(items.size() - 1));
    return plan.Detach(group, std::move(items));
  }

  bool Move(IterationPlan& plan) {
    const int lane = Below(2);
    const std::vector<int>& order = plan.order(lane);
    if (order.empty()) return false;
    return plan.Move(order[Below(order.size())], Below(order.size()));
  }

  const PlanGraph& graph_;
  std::mt19937_64 random_;
};

/// Distinct plans of one program: the best one that a search of `seconds` finds, and plans that are
/// drawn from it and from the plan that the search begins with, and are simulated to take at most
/// twice as long. Equal arguments, whatever `seconds`, make equal edits.
absl::StatusOr<std::vector<PlannedSchedule>> DrawPlans(const Graph& program, const Target& target,
                                                       const CostModel& model, int count,
                                                       double seconds, uint64_t seed) {
  ASSIGN_OR_RETURN(Schedule plain, InitialSchedule(program));
  ASSIGN_OR_RETURN(const PlanGraph graph, PlanGraph::Of(std::move(plain), target, model));
  const FoundPlans found =
      SearchPlans(graph, PlanStrategy::kDirected, {.seconds = seconds, .seed = seed, .keep = 1});
  const FoundPlan& best = found.plans[0];
  std::vector<PlannedSchedule> plans = {PlannedScheduleOf(best.plan, best.us)};
  std::set<std::string> known = {Print(plans[0].schedule)};
  IterationPlan plainest = FusedPlan(graph);
  plainest.Accept();
  Drawing drawing(graph, seed);
  for (int tries = 0; tries < 100 * count && std::ssize(plans) < count; ++tries) {
    IterationPlan plan = drawing.From(tries % 2 == 0 ? best.plan : plainest);
    const double us = plan.Us();
    if (us > 2 * best.us) continue;
    PlannedSchedule planned = PlannedScheduleOf(plan, us);
    if (planned.refused_fusions == 0 && known.insert(Print(planned.schedule)).second)
      plans.push_back(std::move(planned));
  }
  return plans;
}

/// What a worker measures: the plans of a model's step.
struct PlansCase {
  Sizes sizes;  // of gpt_step
  int plans = 0;
  uint64_t seed = 0;
  double search_s = 0;     // of the search for the best plan
  std::string cache = {};  // the folder of compiled kernels

  static auto Fields(auto& c) { return std::tie(c.sizes, c.plans, c.seed, c.search_s, c.cache); }
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
  ASSIGN_OR_RETURN(const Graph step, MakeTrainingStep("gpt_step", c.sizes));
  const Target target = TargetOf(rank);
  ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> binaries,
                   Binaries::Open(rank, {.cache_dir = c.cache}));
  ASSIGN_OR_RETURN(const Schedule plain, InitialSchedule(step));
  ASSIGN_OR_RETURN(const Rates rates,
                   Calibrate(rank, *binaries, {.products = DistinctProducts(plain, target)}));
  const MeasuredCostModel model(rates);
  ASSIGN_OR_RETURN(const std::vector<PlannedSchedule> plans, PlansOfRank0(rank, c, step, model));
  ASSIGN_OR_RETURN(Config config, PlainConfig(rank));
  config.concurrent = true;
  std::vector<TimedProgram> programs;
  for (const PlannedSchedule& plan : plans) {
    ASSIGN_OR_RETURN(Lowered lowered, Lower(plan.schedule, config, target));
    programs.push_back({.program = plan.schedule.program(), .lowered = std::move(lowered)});
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<Module> module, CompilePrograms(*binaries, programs));
  std::vector<TimedPlan> timed;
  for (const TimedProgram& program : programs)
    timed.push_back({&program.lowered.plan, module, RowsOf(plain.program())});
  ASSIGN_OR_RETURN(Stopwatch stopwatch, Stopwatch::Create(rank, std::move(timed)));
  std::vector<Finding> found = {{.side = "rates", .detail = Json(rates)}};
  for (size_t i = 0; i < plans.size(); ++i) {
    Finding& finding = found.emplace_back();
    finding.side = "plan";
    finding.detail = absl::StrCat(plans[i].us);
    ASSIGN_OR_RETURN(finding.timing.median_us, stopwatch.Time(i, {}));
  }
  return found;
}

const Worker<PlansCase> kWorker("plans", MeasurePlans);

/// The rank of each value; equal values have the mean of their ranks.
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
absl::Status MeasureAt(double c, const Sizes& sizes, const std::string& scratch, Times& all,
                       Row& row) {
  const TwoNodes nodes{.scratch = scratch, .cache = "parts"};
  const NodesCase parts{.program = "gpt_step",
                        .sizes = sizes,
                        .budget_s = TuningBudget(/*usual=*/30, /*quick=*/10),
                        .parts_only = true};
  const WantedShare wanted =
      IsQuick() ? UsualShare() : WantedShare{.least = 0.8 * c, .most = 1.25 * c, .aim = c};
  ASSIGN_OR_RETURN(const LinkRate link, nodes.FindRate(Arguments(parts), wanted));
  row.Set("link", link.rate).Set("share", link.parts.share());
  const PlansCase plans{.sizes = sizes,
                        .plans = IsQuick() ? 3 : absl::GetFlag(FLAGS_plans),
                        .seed = absl::GetFlag(FLAGS_seed),
                        .search_s = IsQuick() ? 0.5 : absl::GetFlag(FLAGS_search),
                        .cache = scratch + "/kernels"};
  ASSIGN_OR_RETURN(const std::vector<Finding> found,
                   nodes.Run(link.rate, kWorker.Arguments(plans)));
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
  const Sizes sizes = SizesOf("gpt_step");
  std::vector<RowTask> tasks;
  Times all;
  std::vector<double> correlations;
  for (absl::string_view text : absl::StrSplit(absl::GetFlag(FLAGS_c), ',')) {
    double c = 0;
    if (!absl::SimpleAtod(text, &c) || !(c > 0))
      return absl::InvalidArgumentError(absl::StrCat("--c: want positive numbers, have ", text));
    RowTask& task = tasks.emplace_back();
    task.words = absl::StrCat("c = ", text);
    SetSizes(sizes, task.row.Set("case", task.words).Set("ranks", 2));
    task.measure = [&, c](const std::string& scratch, Row& row) {
      const absl::Status measured = MeasureAt(c, sizes, scratch, all, row);
      correlations.push_back(row.Number("rank_correlation"));
      return measured;
    };
  }
  const auto together = [&](const std::string& /*scratch*/, Row& row) {
    SetErrors(all, row);
    row.Set("rank_correlation", absl::c_accumulate(correlations, 0.0) / std::ssize(correlations));
    return absl::OkStatus();
  };
  tasks.push_back(
      {"all", Row().Set("case", "all"), together, "median_error <= 0.1, rank_correlation >= 0.9"});
  return MeasureRows(tasks,
                     ColumnsOf("case, link, c|ratio|share, plans|%.0f, best|time, worst|time, "
                               "median error|100*%.1f%%, rank correlation|ratio, bar, met, "
                               "error"));
}

const Registered kBenchmark(
    {.name = "plans",
     .purpose = "compares predicted and measured times of plans of training steps",
     .heeds = {"quick", "budget"},
     .positive = {"plans"},
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
