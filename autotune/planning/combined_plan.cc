#include "autotune/planning/combined_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "autotune/planning/first_plan.h"

namespace coconet {
namespace {

NodeId LastNode(const IterationPlan& plan, int group) {
  NodeId last = 0;
  for (int item : plan.group(group).items) last = std::max(last, plan.graph()[item].nodes.back());
  return last;
}

NodeId FirstNode(const IterationPlan& plan, int group) {
  NodeId first = std::numeric_limits<NodeId>::max();
  for (int item : plan.group(group).items)
    first = std::min(first, plan.graph()[item].nodes.front());
  return first;
}

/// Whether a group comes after another, by whatever way.
bool ComesAfter(const IterationPlan& plan, int group, int other) {
  const NodeId first = FirstNode(plan, other);
  std::set<int> seen = {group};
  std::vector<int> stack = {group};
  while (!stack.empty()) {
    const int next = stack.back();
    stack.pop_back();
    for (int before : plan.After(next)) {
      if (before == other) return true;
      if (LastNode(plan, before) > first && seen.insert(before).second) stack.push_back(before);
    }
  }
  return false;
}

void Combine(IterationPlan& plan, double most) {
  const PlanGraph& graph = plan.graph();
  std::vector<int> collectives;
  for (int item = 0; item < graph.size(); ++item) {
    if (graph.IsCollective(item)) collectives.push_back(item);
  }
  absl::c_sort(collectives, [&](int a, int b) { return graph[a].nodes[0] < graph[b].nodes[0]; });
  std::map<int, std::pair<int, double>> last;  // by class: a collective of the last call, bytes
  for (int item : collectives) {
    const double bytes = graph.WorkOfCollective(item).bytes;
    auto& [of_last, sum] = last.try_emplace(graph.bucket(item), -1, 0).first->second;
    const bool joins = of_last >= 0 && sum + bytes <= most &&
                       !ComesAfter(plan, plan.group_of(item), plan.group_of(of_last)) &&
                       plan.Merge(plan.group_of(of_last), plan.group_of(item));
    sum = joins ? sum + bytes : bytes;
    of_last = item;
  }
}

/// Groups in the order of their last operations, as far as they need not wait for others.
void OrderAsWritten(IterationPlan& plan) {
  using Next = std::pair<NodeId, int>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> ready;
  std::map<int, size_t> waits;  // by group: how many it still comes after
  for (int lane : {0, 1}) {
    for (int group : plan.order(lane)) {
      waits[group] = plan.After(group).size();
      if (waits[group] == 0) ready.emplace(LastNode(plan, group), group);
    }
  }
  std::vector<int> orders[2];
  while (!ready.empty()) {
    const int group = ready.top().second;
    ready.pop();
    orders[plan.group(group).lane].push_back(group);
    for (int user : plan.Before(group)) {
      if (--waits[user] == 0) ready.emplace(LastNode(plan, user), user);
    }
  }
  for (int lane : {0, 1}) plan.Reorder(lane, std::move(orders[lane]));
}

}  // namespace

IterationPlan CombinedPlan(const PlanGraph& graph, double bytes) {
  IterationPlan plan = FusedPlan(graph);
  Combine(plan, bytes);
  OrderAsWritten(plan);
  plan.Us();
  plan.Accept();
  return plan;
}

}  // namespace coconet
