#include "jit/config/units.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/operand_index.h"
#include "coconet/schedule/steps.h"

namespace coconet {

bool IsStore(const Graph& g, NodeId id) { return Is<Update>(g, id) || Is<Output>(g, id); }
NodeId StoredOperand(const Graph& g, NodeId store) { return g.nodes[store].inputs.back(); }

NodeId Units::Value(NodeId id) const {
  while (Is<Update>(*graph, id)) id = graph->nodes[id].inputs[1];
  return id;
}

bool Units::IsScalar(NodeId id) const {
  if (Is<Const>(*graph, id) || Is<WorldSize>(*graph, id)) return true;
  if (!IsComputation(graph->nodes[id].op)) return false;
  return types[id].shape.empty() && unit_of[id] < 0;
}

std::set<NodeId> Units::Reads(NodeId id, int unit) const {
  std::set<NodeId> reads;
  std::set<NodeId> seen;
  std::vector<NodeId> pending;
  const auto expand = [&](NodeId of) {
    for (NodeId operand : ValueOperands(*graph, of)) {
      if (seen.insert(Value(operand)).second) pending.push_back(Value(operand));
    }
  };
  expand(id);
  while (!pending.empty()) {
    const NodeId next = pending.back();
    pending.pop_back();
    if (IsScalar(next)) {
      expand(next);
    } else if (unit_of[next] < 0 || unit_of[next] != unit) {
      reads.insert(next);
    }
  }
  return reads;
}

namespace {

using Kernels = std::vector<std::vector<NodeId>>;

bool DoneBy(LibraryDoes library, const Graph& g, NodeId id) {
  if (!Communicates(g, id)) return false;
  return library == LibraryDoes::kAll ||
         (library == LibraryDoes::kOverAllRanks && SpanOf(g.nodes[id].op) == Span::kAll);
}

/// Whether a node can write over its operand: element by element, and of collectives sums and
/// broadcasts.
bool WorksInPlace(const Graph& g, const std::vector<TensorType>& types, NodeId id) {
  const Node& node = g.nodes[id];
  if (Communicates(g, id)) return Is<AllReduce>(g, id) || Is<Broadcast>(g, id);
  return !Is<MatMul>(g, id) &&
         !(IsView(node.op) && MovesElements(node.op, types[id].shape, types[node.inputs[0]].shape));
}

/// A node that takes a state, and whose result `store` would assign to that state while the node
/// still reads it.
bool WouldOverwriteItsOperand(const Graph& g, const std::vector<TensorType>& types, NodeId id,
                              NodeId store) {
  if (!Is<Update>(g, store) || WorksInPlace(g, types, id)) return false;
  const NodeId state = g.nodes[store].inputs[0];
  return absl::c_any_of(g.nodes[id].inputs, [&](NodeId operand) {
    while (Is<Update>(g, operand) && g.nodes[operand].inputs[0] != state)
      operand = StoredOperand(g, operand);
    return operand == state || Is<Update>(g, operand);
  });
}

/// Whether `store` updates a state of which another launch of the producer's overlap reads more
/// than its own chunk: it would see it half new.
bool WouldOverwriteInOverlap(const Schedule& s, const std::vector<TensorType>& types,
                             const Steps& steps, int producer, NodeId store) {
  if (!Is<Update>(s.graph, store)) return false;
  const NodeId state = s.graph.nodes[store].inputs[0];
  const auto reads = [&](NodeId id) {
    const bool in_chunk =
        IsElementwise(s.graph.nodes[id].op) && types[id].shape == types[state].shape;
    return !in_chunk && absl::c_linear_search(ValueOperands(s.graph, id), state);
  };
  const NodeId first = steps.nodes[producer][0];
  for (const std::vector<NodeId>& overlap : s.overlaps) {
    if (!absl::c_linear_search(overlap, first)) continue;
    for (NodeId other : overlap) {
      if (other != first && absl::c_any_of(steps.nodes[steps.of[other]], reads)) return true;
    }
  }
  return false;
}

/// Lets the unit that computes a value store it too, instead of a copy in a unit of its own.
/// `kernels` grow by that. A library writes one buffer, so it takes one store.
void Attach(const Schedule& s, const Units& u, NodeId store, LibraryDoes library,
            const Steps& steps, Kernels& kernels) {
  const Graph& g = s.graph;
  if (steps.nodes[steps.of[store]].size() != 1) return;
  const NodeId value = AssignedValues(g)[StoredOperand(g, store)];
  const int producer = steps.of[value];
  if (producer < 0 || u.each[store] != u.each[value]) return;
  const std::vector<NodeId>& nodes = steps.nodes[producer];
  auto kernel = std::find_if(kernels.begin(), kernels.end(), [&](const auto& k) {
    return std::find(k.begin(), k.end(), nodes[0]) != k.end();
  });
  if (absl::c_any_of(nodes,
                     [&](NodeId id) { return WouldOverwriteItsOperand(g, u.types, id, store); }))
    return;
  if (WouldOverwriteInOverlap(s, u.types, steps, producer, store)) return;
  if (kernel == kernels.end()) {
    kernel = kernels.insert(kernels.end(), nodes);
  } else if (nodes.size() == 1 && (!IsKernelWork(g, nodes[0]) || DoneBy(library, g, nodes[0]))) {
    return;
  }
  kernel->push_back(store);
  std::sort(kernel->begin(), kernel->end());
}

/// By first node where dependencies leave a choice; shorter than the list of steps when there is a
/// cycle.
std::vector<int> Order(const Steps& steps) {
  return InOrder(steps, std::vector<int>(steps.nodes.size(), 0));
}

/// `order` with the launches of each overlap one after the other: each overlap is one step of it.
std::vector<int> WithChains(const Steps& steps, const std::vector<std::vector<NodeId>>& overlaps,
                            const std::vector<int>& order) {
  std::vector<int> merged_of(steps.nodes.size(), -1);
  std::vector<std::vector<int>> members;
  for (const std::vector<NodeId>& overlap : overlaps) {
    std::vector<int>& chain = members.emplace_back();
    for (NodeId first : overlap) {
      chain.push_back(steps.of[first]);
      merged_of[chain.back()] = static_cast<int>(members.size()) - 1;
    }
  }
  for (int step : order) {
    if (merged_of[step] >= 0) continue;
    merged_of[step] = static_cast<int>(members.size());
    members.push_back({step});
  }
  Steps merged;
  std::vector<int> rank(members.size());
  for (size_t i = 0; i < order.size(); ++i) rank[merged_of[order[i]]] = static_cast<int>(i);
  for (const std::vector<int>& chain : members) {
    std::set<int> after;
    for (int step : chain) {
      for (int before : steps.after[step]) after.insert(merged_of[before]);
    }
    after.erase(static_cast<int>(merged.nodes.size()));
    merged.nodes.push_back(steps.nodes[chain[0]]);
    merged.after.emplace_back(after.begin(), after.end());
  }
  std::vector<int> result;
  for (int step : InOrder(merged, rank))
    result.insert(result.end(), members[step].begin(), members[step].end());
  return result;
}

/// The order that the steps run in; shorter than their list when there is none.
std::vector<int> OrderOf(const Steps& steps, const std::vector<std::vector<NodeId>>& overlaps) {
  const std::vector<int> order = Order(steps);
  return order.size() == steps.nodes.size() ? WithChains(steps, overlaps, order) : order;
}

/// The schedule's kernels, with stores attached to what computes their values as long as no cycle
/// arises.
Kernels AttachStores(const Schedule& s, const Units& u, LibraryDoes library) {
  const Steps bare = FindSteps(s.graph, s.kernels);
  Kernels all = s.kernels;
  std::vector<NodeId> stores;
  for (NodeId id = 0; id < s.graph.size(); ++id) {
    if (!IsStore(s.graph, id)) continue;
    stores.push_back(id);
    Attach(s, u, id, library, bare, all);
  }
  const auto runs = [&](const Kernels& kernels) {
    const Steps steps = FindSteps(s.graph, kernels);
    return OrderOf(steps, s.overlaps).size() == steps.nodes.size();
  };
  if (runs(all)) return all;
  Kernels kernels = s.kernels;
  for (NodeId store : stores) {
    Kernels more = kernels;
    Attach(s, u, store, library, bare, more);
    if (runs(more)) kernels = std::move(more);
  }
  return kernels;
}

}  // namespace

absl::StatusOr<Units> CutIntoUnits(const Schedule& schedule, LibraryDoes library, int tensors,
                                   std::vector<bool> each) {
  const Graph& g = schedule.graph;
  Units u;
  u.graph = &g;
  ASSIGN_OR_RETURN(u.types, InferTypes(g));
  u.users = Users(g);
  u.unit_of.assign(g.size(), -1);
  u.tensors = tensors;
  u.each = std::move(each);
  u.each.resize(g.size());
  std::vector<bool> fused(g.size());
  for (const std::vector<NodeId>& kernel : schedule.kernels) {
    for (NodeId id : kernel) fused[id] = true;
  }
  const Steps steps = FindSteps(g, AttachStores(schedule, u, library));
  const std::vector<int> order = OrderOf(steps, schedule.overlaps);
  if (order.size() != steps.nodes.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "lower(", g.name, "): the kernels of the schedule depend on each other in a cycle"));
  }
  for (int step : order) {
    const std::vector<NodeId>& nodes = steps.nodes[step];
    const bool by_library = std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
      return (!IsKernelWork(g, id) || DoneBy(library, g, id)) && !fused[id];
    });
    for (NodeId id : nodes) u.unit_of[id] = static_cast<int>(u.units.size());
    u.units.push_back({nodes, by_library});
  }
  for (const std::vector<NodeId>& overlap : schedule.overlaps) {
    u.chains.push_back({u.unit_of[overlap.front()], u.unit_of[overlap.back()], overlap});
  }
  std::sort(u.chains.begin(), u.chains.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return u;
}

}  // namespace coconet
