#include "autotune/planning/copies.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "autotune/planning/first_plan.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

/// A use of a value by a node.
struct Use {
  NodeId value = -1, user = -1;
  auto operator<=>(const Use&) const = default;
};

/// The program with a copy of the value's operation for each of the uses, which are sorted.
Graph CopiedFor(const Graph& g, const std::vector<Use>& uses) {
  Graph out{g.name, {}, g.lists};
  std::vector<NodeId> renamed;
  const auto inputs_of = [&](NodeId id) {
    std::vector<NodeId> inputs;
    for (NodeId input : g.nodes[id].inputs) inputs.push_back(renamed[input]);
    return inputs;
  };
  for (NodeId id = 0; id < g.size(); ++id) {
    std::vector<NodeId> inputs = inputs_of(id);
    std::map<NodeId, NodeId> copies;  // of this node's operands
    for (size_t i = 0; i < inputs.size(); ++i) {
      const NodeId value = g.nodes[id].inputs[i];
      if (!absl::c_binary_search(uses, Use{value, id})) continue;
      const auto [copy, is_new] = copies.try_emplace(value, -1);
      if (is_new) copy->second = out.Add(g.nodes[value].op, inputs_of(value));
      inputs[i] = copy->second;
    }
    renamed.push_back(out.Add(g.nodes[id].op, std::move(inputs)));
  }
  return out;
}

/// Uses, by kind of item, of elementwise values by kernels other than their own.
std::map<int, std::vector<Use>> UsesByKind(const IterationPlan& plan) {
  const PlanGraph& graph = plan.graph();
  const TypedGraph& program = graph.schedule().program();
  std::map<int, std::vector<Use>> uses;
  for (int item = 0; item < graph.size(); ++item) {
    const NodeId id = graph[item].nodes[0];
    if (graph[item].kind != PlanItem::Kind::kJoins || !IsElementwise(program.op(id))) continue;
    for (NodeId user : program.users()[id]) {
      const int taker = graph.item_of(user);
      if (taker < 0 || graph[taker].kind != PlanItem::Kind::kJoins) continue;
      // A store would keep the copy, and others take the value of the state.
      if (RoleOf(program.op(user)) == Role::kStore) continue;
      if (plan.group_of(taker) != plan.group_of(item))
        uses[graph[item].alike].push_back({id, user});
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

absl::StatusOr<CopiedSchedule> WithCopies(const IterationPlan& plan) {
  const PlanGraph& graph = plan.graph();
  const Schedule& plain = graph.schedule();
  CopiedSchedule best{plain};
  double best_us = UsOfFirstPlan(plain, graph);
  std::vector<Use> accepted;
  for (const auto& [kind, uses] : UsesByKind(plan)) {
    std::vector<Use> tried = accepted;
    tried.insert(tried.end(), uses.begin(), uses.end());
    absl::c_sort(tried);
    ASSIGN_OR_RETURN(TypedGraph program, TypedGraph::Of(CopiedFor(plain.graph(), tried)));
    const Schedule copied(std::move(program), {});
    if (copied.order().size() != copied.launches().list.size()) continue;
    const double us = UsOfFirstPlan(copied, graph);
    if (us >= best_us) continue;
    best_us = us;
    best = {copied, copied.graph().size() - plain.graph().size()};
    accepted = std::move(tried);
  }
  return best;
}

}  // namespace coconet
