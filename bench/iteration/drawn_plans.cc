#include "bench/iteration/drawn_plans.h"

#include <random>
#include <set>
#include <string>
#include <utility>

#include "autotune/planning/first_plan.h"
#include "autotune/planning/plan_graph.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

class Drawing {
 public:
  Drawing(const PlanGraph& graph, uint64_t seed) : graph_(graph), random_(seed) {}

  /// A plan some edits away from `from`, as accepted.
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
    switch (Below(5)) {
      case 0:
        return JoinBuckets(plan);
      case 1:
        return Detach(plan, 1);
      case 2:
        return Detach(plan, 0);
      case 3:
        return JoinKernels(plan);
      default:
        return Move(plan);
    }
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

}  // namespace

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

}  // namespace coconet::bench
