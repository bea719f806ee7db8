#include "autotune/planning/copies.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "autotune/planning/first_plan.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

/// A use of a value by a node.
struct Use {
  NodeId value = -1, user = -1;
};

/// Computes the used values again for those that use them.
Recompute RecomputeOf(const std::vector<Use>& uses) {
  std::set<NodeId> values, users;
  for (const Use& use : uses) {
    values.insert(use.value);
    users.insert(use.user);
  }
  return {{values.begin(), values.end()}, {users.begin(), users.end()}};
}

/// Uses, by kind of item, of elementwise values by kernels other than their own.
std::map<int, std::vector<Use>> UsesByKind(const IterationPlan& plan) {
  const PlanGraph& graph = plan.graph();
  const TypedGraph& program = graph.schedule().program();
  std::map<int, std::vector<Use>> uses;
  for (int item = 0; item < graph.size(); ++item) {
    const NodeId id = graph[item].nodes[0];
    if (!graph.Joins(item) || !IsElementwise(program.op(id))) continue;
    for (NodeId user : program.users()[id]) {
      const int taker = graph.item_of(user);
      if (taker < 0 || !graph.Joins(taker)) continue;
      // A store would keep the copy, and others take the value of the state.
      if (RoleOf(program.op(user)) == Role::kStore) continue;
      if (plan.group_of(taker) != plan.group_of(item))
        uses[graph.alike(item)].push_back({id, user});
    }
  }
  return uses;
}

double UsOfFirstPlan(const Schedule& schedule, const PlanGraph& like) {
  absl::StatusOr<PlanGraph> graph = PlanGraph::Of(schedule, like.target(), like.model());
  CC_CHECK(graph.ok());
  IterationPlan plan = FirstPlan(*graph, [](const IterationPlan&, double) { return true; });
  return plan.Accept();
}

}  // namespace

CopiedSchedule WithCopies(const IterationPlan& plan) {
  const PlanGraph& graph = plan.graph();
  const Schedule& plain = graph.schedule();
  CopiedSchedule best{plain};
  double best_us = UsOfFirstPlan(plain, graph);
  std::vector<Use> accepted;
  for (const auto& [kind, uses] : UsesByKind(plan)) {
    std::vector<Use> tried = accepted;
    tried.insert(tried.end(), uses.begin(), uses.end());
    const Recompute recompute = RecomputeOf(tried);
    absl::StatusOr<RecomputedSchedule> copied = ApplyRecompute(plain, recompute);
    // Refused where values of one kind are computed from those of another.
    if (!copied.ok()) continue;
    const double us = UsOfFirstPlan(copied->schedule, graph);
    if (us >= best_us) continue;
    best_us = us;
    best = {std::move(copied->schedule), static_cast<int>(recompute.nodes.size())};
    accepted = std::move(tried);
  }
  return best;
}

}  // namespace coconet
