#include "autotune/planning/plan_iteration.h"

#include <utility>

#include "autotune/planning/combined_plan.h"
#include "autotune/planning/plan_graph.h"
#include "autotune/planning/plan_tasks.h"
#include "autotune/simulation/timeline.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

Timeline TimelineOf(const IterationPlan& plan, const TaskGraph& tasks) {
  absl::StatusOr<Timeline> timeline = Simulate(tasks, {.contention = plan.graph().contention()});
  CC_CHECK(timeline.ok());  // plans have no cycles
  return *std::move(timeline);
}

PlanFigures Figures(const IterationPlan& plan, const TaskGraph& tasks, const Timeline& timeline) {
  PlanFigures figures{.us = timeline.us, .bound_us = BoundOf(plan)};
  for (int lane : {0, 1}) {
    for (int group : plan.order(lane)) {
      const bool communicates = plan.group(group).is_collective;
      (communicates ? figures.communication_us : figures.computation_us) += plan.group(group).us;
      ++(communicates ? figures.collectives : figures.kernels);
    }
  }
  figures.exposed_us = ExposedCommunication(tasks, timeline);
  figures.peak_bytes = PeakBytes(tasks, timeline);
  return figures;
}

}  // namespace

PlanFigures FiguresOf(const IterationPlan& plan) {
  const TaskGraph tasks = TasksOf(plan);
  return Figures(plan, tasks, TimelineOf(plan, tasks));
}

absl::StatusOr<PlannedIteration> PlanIteration(const Graph& program, const Target& target,
                                               const CostModel& model,
                                               const PlanSearchOptions& search) {
  ASSIGN_OR_RETURN(Schedule schedule, InitialSchedule(program));
  PlannedIteration planned;
  planned.operations = schedule.graph().size();
  ASSIGN_OR_RETURN(const PlanGraph graph, PlanGraph::Of(std::move(schedule), target, model));
  planned.launches = graph.size();
  planned.combined = FiguresOf(CombinedPlan(graph));
  const FoundPlans found = SearchPlans(graph, PlanStrategy::kDirected, search);
  const IterationPlan& best = found.plans[0].plan;
  planned.evaluations = found.progress.evaluations;
  planned.tasks = TasksOf(best);
  planned.timeline = TimelineOf(best, planned.tasks);
  planned.found = Figures(best, planned.tasks, planned.timeline);
  return planned;
}

}  // namespace coconet
