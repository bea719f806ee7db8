#include "coconet/schedule/steps.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/schedule/kernel_phases.h"

namespace coconet {
namespace {

/// What is recomputed from `state`s before the step: whether the value takes, through recomputed
/// nodes, that of another state than `state` that is updated, too.
bool TakesAnother(const Graph& g, const std::vector<bool>& recomputed, NodeId value, NodeId state) {
  std::set<NodeId> updated, seen;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (As<Update>(g, id)) updated.insert(g.nodes[id].inputs[0]);
  }
  const std::vector<NodeId> values = AssignedValues(g);
  std::vector<NodeId> stack = {value};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (id != state && updated.contains(id)) return true;
    if (!recomputed[id]) continue;
    for (NodeId input : g.nodes[id].inputs) {
      if (seen.insert(values[input]).second) stack.push_back(values[input]);
    }
  }
  return false;
}

/// By node: its index in `kernels`, -1: in none.
std::vector<int> KernelOf(const Graph& g, const std::vector<std::vector<NodeId>>& kernels) {
  std::vector<int> kernel(g.nodes.size(), -1);
  for (size_t k = 0; k < kernels.size(); ++k) {
    for (NodeId id : kernels[k]) kernel[id] = static_cast<int>(k);
  }
  return kernel;
}

/// By node: in no step.
std::vector<bool> RecomputedNodes(const Graph& g, const std::vector<int>& kernel) {
  const absl::StatusOr<std::vector<TensorType>> types = InferTypes(g);
  CC_CHECK(types.ok());
  const std::vector<NodeId> values = AssignedValues(g);
  std::vector<bool> recomputed(g.nodes.size());
  for (NodeId id = 0; id < g.size(); ++id) {
    const bool is_source = g.nodes[id].inputs.empty();
    const bool is_computation = IsComputation(g.nodes[id].op);
    recomputed[id] = is_source || (is_computation && (*types)[id].shape.empty());
    if (!Communicates(g, id)) continue;
    const NodeId fold = FoldBelow(g, *types, id);
    if (fold >= 0 && kernel[id] >= 0 && kernel[fold] == kernel[id])
      continue;  // what it sums up is in no memory
    const NodeId operand = values[g.nodes[id].inputs[0]];
    recomputed[operand] = g.nodes[operand].inputs.empty();
  }
  // Two states may each take the other's value before the step: then both new values must be there
  // before either is stored.
  std::vector<bool> result = recomputed;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!As<Update>(g, id) || g.nodes[values[id]].inputs.empty() || !recomputed[values[id]])
      continue;
    if (TakesAnother(g, recomputed, values[id], g.nodes[id].inputs[0])) result[values[id]] = false;
  }
  return result;
}

/// What the steps read, followed through recomputed nodes and updates.
class Dependencies {
 public:
  Dependencies(const Graph& g, Steps* steps)
      : g_(g), steps_(*steps), values_(AssignedValues(g)), leaves_(g.nodes.size()) {
    for (NodeId id = 0; id < g.size(); ++id) FindLeaves(id);
    std::map<NodeId, std::set<int>> readers;  // of states
    std::vector<std::set<int>> after(steps_.nodes.size());
    for (NodeId id = 0; id < g.size(); ++id) {
      const int step = steps_.of[id];
      if (step < 0) continue;
      for (NodeId operand : ValueOperands(g, id)) {
        for (NodeId leaf : leaves_[values_[operand]]) {
          if (As<State>(g, leaf)) readers[leaf].insert(step);
          if (steps_.of[leaf] >= 0) after[step].insert(steps_.of[leaf]);
        }
      }
    }
    for (NodeId id = 0; id < g.size(); ++id) {
      if (!As<Update>(g, id)) continue;
      const std::set<int>& before = readers[g.nodes[id].inputs[0]];
      after[steps_.of[id]].insert(before.begin(), before.end());
    }
    for (size_t step = 0; step < after.size(); ++step) {
      after[step].erase(static_cast<int>(step));
      steps_.after.emplace_back(after[step].begin(), after[step].end());
    }
  }

 private:
  /// leaves_[id]: the states and the nodes of steps that the value of `id` is read or recomputed
  /// from.
  void FindLeaves(NodeId id) {
    if (steps_.of[id] >= 0 || As<State>(g_, id)) {
      leaves_[id] = {id};
      return;
    }
    for (NodeId operand : g_.nodes[id].inputs) {
      const std::set<NodeId>& more = leaves_[values_[operand]];
      leaves_[id].insert(more.begin(), more.end());
    }
  }

  const Graph& g_;
  Steps& steps_;
  std::vector<NodeId> values_;
  std::vector<std::set<NodeId>> leaves_;
};

/// By step: reached from `start` against the edges (`after`), `start` itself only through a cycle.
std::vector<bool> Reached(const std::vector<std::vector<int>>& edges, int start) {
  std::vector<bool> reached(edges.size());
  std::vector<int> stack = {start};
  while (!stack.empty()) {
    const int step = stack.back();
    stack.pop_back();
    for (int next : edges[step]) {
      if (reached[next]) continue;
      reached[next] = true;
      stack.push_back(next);
    }
  }
  return reached;
}

std::vector<std::vector<int>> Reversed(const std::vector<std::vector<int>>& edges) {
  std::vector<std::vector<int>> reversed(edges.size());
  for (size_t to = 0; to < edges.size(); ++to) {
    for (int from : edges[to]) reversed[from].push_back(static_cast<int>(to));
  }
  return reversed;
}

}  // namespace

bool Communicates(const Graph& g, NodeId id) {
  return As<AllReduce>(g, id) || As<ReduceScatter>(g, id) || As<AllGather>(g, id) ||
         As<Broadcast>(g, id) || As<ReduceTo>(g, id) || As<AllToAll>(g, id) || As<Send>(g, id);
}

bool IsKernelWork(const Graph& g, NodeId id) {
  return !As<MatMul>(g, id) && !As<Broadcast>(g, id) && !As<ReduceTo>(g, id) &&
         !As<AllToAll>(g, id) && !As<Send>(g, id) && SpanOf(g.nodes[id].op) != Span::kAcross;
}

bool JoinsKernels(const Graph& g, NodeId id) { return IsKernelWork(g, id) || As<Send>(g, id); }

std::vector<NodeId> ValueOperands(const Graph& g, NodeId id) {
  if (As<Update>(g, id)) return {g.nodes[id].inputs[1]};
  return g.nodes[id].inputs;
}

std::vector<NodeId> AssignedValues(const Graph& g) {
  std::vector<NodeId> values(g.nodes.size());
  for (NodeId id = 0; id < g.size(); ++id)
    values[id] = As<Update>(g, id) ? values[g.nodes[id].inputs[1]] : id;
  return values;
}

std::vector<int> Stages(const Graph& g) {
  const std::vector<NodeId> values = AssignedValues(g);
  // What takes a fold to a scalar waits for all elements, as what takes a collective's result does.
  const auto later = [&](NodeId value, NodeId id) {
    const auto* fold = As<Fold>(g, value);
    return Communicates(g, id) || (fold != nullptr && fold->dims.empty()) ? 1 : 0;
  };
  std::vector<int> earliest(g.nodes.size(), 0);
  for (NodeId id = 0; id < g.size(); ++id) {
    for (NodeId operand : ValueOperands(g, id)) {
      earliest[id] = std::max(earliest[id], earliest[values[operand]] + later(values[operand], id));
    }
  }
  constexpr int kUnused = std::numeric_limits<int>::max();
  std::vector<int> stage(g.nodes.size(), kUnused);
  for (NodeId id = g.size() - 1; id >= 0; --id) {
    if (stage[id] == kUnused) stage[id] = earliest[id];
    for (NodeId operand : ValueOperands(g, id)) {
      int& before = stage[values[operand]];
      before = std::min(before, stage[id] - later(values[operand], id));
    }
  }
  return stage;
}

Steps FindSteps(const Graph& g, const std::vector<std::vector<NodeId>>& kernels) {
  Steps steps;
  steps.nodes = kernels;
  const std::vector<int> kernel = KernelOf(g, kernels);
  const std::vector<bool> recomputed = RecomputedNodes(g, kernel);
  for (NodeId id = 0; id < g.size(); ++id) {
    if (kernel[id] < 0 && !recomputed[id]) steps.nodes.push_back({id});
  }
  std::sort(steps.nodes.begin(), steps.nodes.end());
  steps.of.assign(g.nodes.size(), -1);
  for (size_t step = 0; step < steps.nodes.size(); ++step) {
    for (NodeId id : steps.nodes[step]) steps.of[id] = static_cast<int>(step);
  }
  Dependencies(g, &steps);
  return steps;
}

std::vector<int> InOrder(const Steps& steps, const std::vector<int>& rank) {
  const std::vector<std::vector<int>> before = Reversed(steps.after);
  std::vector<size_t> missing;
  std::set<std::pair<int, int>> ready;
  for (size_t step = 0; step < steps.nodes.size(); ++step) {
    missing.push_back(steps.after[step].size());
    if (missing[step] == 0) ready.emplace(rank[step], step);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int step = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(step);
    for (int next : before[step]) {
      if (--missing[next] == 0) ready.emplace(rank[next], next);
    }
  }
  return order;
}

std::vector<int> StepsWithin(const Steps& steps, int inside) {
  const std::vector<bool> earlier = Reached(steps.after, inside);
  const std::vector<bool> later = Reached(Reversed(steps.after), inside);
  std::vector<int> within;
  for (size_t step = 0; step < steps.nodes.size(); ++step) {
    if (earlier[step] && later[step] && static_cast<int>(step) != inside)
      within.push_back(static_cast<int>(step));
  }
  return within;
}

}  // namespace coconet
