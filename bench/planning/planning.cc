// Searches plans of whole training steps: how far from the bound, from longer searches and from
// DisCo's backtracking the default search ends, on one simulator with fixed rates.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/cost/nominal_cost_model.h"
#include "autotune/planning/first_plan.h"
#include "autotune/planning/plan_search.h"
#include "autotune/planning/plan_tasks.h"
#include "autotune/planning/planned_schedules.h"
#include "autotune/simulation/timeline.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"
#include "coconet/workloads/training_steps.h"

ABSL_FLAG(std::vector<std::string>, layers, std::vector<std::string>({"12", "48"}),
          "of the models");
ABSL_FLAG(std::vector<std::string>, c, std::vector<std::string>({"0.5", "1", "2"}),
          "communication over computation");
ABSL_FLAG(int64_t, width, 256, "of the models");
ABSL_FLAG(double, seconds, 10, "of a search, on one core");
ABSL_FLAG(int, seeds, 5, "longer searches, to be compared with; 0: none");
ABSL_FLAG(double, long_seconds, 1800, "of each of the longer searches");
ABSL_FLAG(double, beside, 1.1, "how many times as long computation takes beside a collective");
ABSL_FLAG(uint64_t, seed, 1, "of the searches; the longer ones have the next");
ABSL_FLAG(std::string, trace, "", "file for a Chrome trace of the last plan");
ABSL_FLAG(bool, verbose, false, "print the progress of the default search");

namespace coconet::bench {
namespace {

/// The model of a row; with --quick a small one, whatever `layers`.
GptModel ModelOf(int64_t layers) {
  if (IsQuick())
    return {.layers = 2, .width = 32, .heads = 2, .vocabulary = 64, .sequence = 16, .examples = 2};
  const int64_t width = absl::GetFlag(FLAGS_width);
  return {.layers = layers,
          .width = width,
          .heads = std::max<int64_t>(1, width / 64),
          .vocabulary = 1000,
          .sequence = 128,
          .examples = 4};
}

double ComputationOf(const IterationPlan& plan) {
  double us = 0;
  for (int group : plan.order(0)) {
    if (!plan.group(group).is_collective) us += plan.group(group).us;
  }
  return us;
}

/// Rates of a processor, and of a link at which all gradients take c times the fused computation.
NominalRates RatesFor(const PlanGraph& graph, const NominalRates& rates, double c) {
  const double us = ComputationOf(FusedPlan(graph));
  double bytes = 0;
  for (int item = 0; item < graph.size(); ++item) {
    if (graph.IsCollective(item)) bytes += graph.WorkOfCollective(item).bytes;
  }
  NominalRates scaled = rates;
  scaled.link_bytes_per_us = bytes / (c * us);
  return scaled;
}

/// What the best plan is like.
absl::Status Describe(const FoundPlans& found, Row& row) {
  const IterationPlan& plan = found.plans[0].plan;
  const TaskGraph tasks = TasksOf(plan);
  const double us = found.progress.us, computation = ComputationOf(plan);
  ASSIGN_OR_RETURN(const Timeline timeline,
                   Simulate(tasks, {.contention = plan.graph().contention()}));
  int64_t kernels = 0, buckets = 0;
  for (const Task& task : tasks.tasks) ++(task.kind == TaskKind::kCollective ? buckets : kernels);
  row.Set("computation_us", computation).Set("kernels", kernels).Set("buckets", buckets);
  row.Set("evaluations", found.progress.evaluations).Set("us", us);
  row.Set("bound_us", found.progress.bound_us).Set("over_bound", us / found.progress.bound_us);
  row.Set("full_overlap_us", std::max(computation, plan.work() - computation));
  row.Set("exposed_us", ExposedCommunication(tasks, timeline));
  row.Set("peak_bytes", PeakBytes(tasks, timeline));
  const double begin = SecondsNow();
  const PlannedSchedule planned = PlannedScheduleOf(plan, us);
  row.Set("convert_s", SecondsNow() - begin).Set("refused", planned.refused_fusions);
  if (const std::string file = Resolve(absl::GetFlag(FLAGS_trace)); !file.empty())
    return WriteFile(file, ChromeTrace(tasks, timeline).text);
  return absl::OkStatus();
}

/// The default search, beside backtracking and longer ones.
absl::Status Compare(const PlanGraph& graph, Row& row) {
  const double seconds = IsQuick() ? 0.3 : absl::GetFlag(FLAGS_seconds);
  const double long_s = IsQuick() ? 0.6 : absl::GetFlag(FLAGS_long_seconds);
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  PlanSearchOptions options{.seconds = seconds, .seed = seed};
  if (absl::GetFlag(FLAGS_verbose)) {
    options.progress = [](const PlanProgress& p) {
      absl::PrintF("%6.1f s  %8d plans  %.0f us  gap %.2f%%\n", p.seconds, p.evaluations, p.us,
                   100 * p.gap());
    };
  }
  const FoundPlans found = SearchPlans(graph, PlanStrategy::kDirected, options);
  RETURN_IF_ERROR(Describe(found, row));
  const double us = found.progress.us;
  const auto found_us = [&](PlanStrategy strategy, double limit_s, uint64_t of_seed) {
    return SearchPlans(graph, strategy, {.seconds = limit_s, .seed = of_seed}).progress.us;
  };
  const double backtracking = found_us(PlanStrategy::kBacktracking, seconds, seed);
  row.Set("backtracking_us", backtracking).Set("over_backtracking", us / backtracking);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 1; i <= absl::GetFlag(FLAGS_seeds); ++i)
    best = std::min(best, found_us(PlanStrategy::kDirected, long_s, seed + i));
  row.Set("seconds", seconds).Set("seeds", absl::GetFlag(FLAGS_seeds));
  if (absl::GetFlag(FLAGS_seeds) > 0)
    row.Set("long_s", long_s).Set("long_us", best).Set("over_long", us / best);
  return absl::OkStatus();
}

absl::Status PlanStep(const GptModel& model, double c, Row& row) {
  ASSIGN_OR_RETURN(const Graph program, GptStep(model));
  const Target target(2, 2);
  const NominalRates usual{.computation_beside = absl::GetFlag(FLAGS_beside)};
  const double begin = SecondsNow();
  ASSIGN_OR_RETURN(const Schedule schedule, InitialSchedule(program));
  row.Set("schedule_s", SecondsNow() - begin);
  const NominalCostModel first_rates(usual);
  ASSIGN_OR_RETURN(const PlanGraph first, PlanGraph::Of(schedule, target, first_rates));
  const NominalCostModel rates(RatesFor(first, usual, c));
  const double built = SecondsNow();
  ASSIGN_OR_RETURN(const PlanGraph graph, PlanGraph::Of(schedule, target, rates));
  row.Set("build_s", SecondsNow() - built);
  row.Set("operations", schedule.graph().size()).Set("launches", graph.size());
  return Compare(graph, row);
}

absl::Status RunAll() {
  std::vector<RowTask> tasks;
  std::string bars = "over_bound <= 1.05, over_backtracking <= 1, build_s <= 2, refused <= 0";
  if (absl::GetFlag(FLAGS_seeds) > 0) bars += ", over_long <= 1.03";
  for (const int layers : IntegersOf(absl::GetFlag(FLAGS_layers))) {
    for (const std::string& c_text : absl::GetFlag(FLAGS_c)) {
      double c = 0;
      if (!absl::SimpleAtod(c_text, &c) || !(c > 0))
        return absl::InvalidArgumentError(
            absl::StrCat("--c: want positive numbers, have ", c_text));
      const GptModel model = ModelOf(layers);
      const std::string name = absl::StrCat("gpt_step ", model.layers, "x", model.width);
      tasks.push_back(
          {absl::StrCat(name, ", c = ", c),
           Row().Set("case", name).Set("layers", model.layers).Set("c", c),
           [=](const std::string& /*scratch*/, Row& row) { return PlanStep(model, c, row); },
           bars});
    }
    if (IsQuick()) break;
  }
  const std::vector<Column> columns = ColumnsOf(
      "case|result, c|%.1f, operations|%.0f, build|%.2f s|build_s, convert|%.2f s|convert_s, "
      "refused|%.0f, kernels|%.0f, buckets|%.0f, plans|%.0f|evaluations, simulated|time|us, "
      "over bound|%.4f, over full overlap|*, over backtracking|%.4f, over long|%.4f, met",
      {{"over full overlap", [](const Row& r) {
          return absl::StrFormat("%.3f", r.Number("us") / r.Number("full_overlap_us"));
        }}});
  return MeasureRows(tasks, columns);
}

const Registered kBenchmark({.name = "planning",
                             .purpose = "searches plans of training steps",
                             .heeds = {"quick"},
                             .positive = {"layers", "width"},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
