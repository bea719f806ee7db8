#include "jit/units.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/infer.h"

namespace coconet {

bool IsCollective(const Graph& g, NodeId id) {
  return Is<AllReduce>(g, id) || Is<ReduceScatter>(g, id) || Is<AllGather>(g, id);
}
bool IsStore(const Graph& g, NodeId id) { return Is<Update>(g, id) || Is<Output>(g, id); }
NodeId StoredOperand(const Graph& g, NodeId store) { return g.nodes[store].inputs.back(); }

NodeId Units::Value(NodeId id) const {
  while (Is<Update>(*graph, id)) id = graph->nodes[id].inputs[1];
  return id;
}

bool Units::IsScalar(NodeId id) const {
  if (Is<Const>(*graph, id) || Is<WorldSize>(*graph, id)) return true;
  if (!Is<Pointwise>(*graph, id) && !Is<Cast>(*graph, id)) return false;
  return types[id].shape.empty() && unit_of[id] < 0;
}

std::set<NodeId> Units::Reads(NodeId id, int unit) const {
  std::set<NodeId> reads;
  std::vector<NodeId> pending;
  const auto expand = [&](NodeId of) {
    const std::vector<NodeId>& inputs = graph->nodes[of].inputs;
    // An update writes its state; only its value is read.
    for (size_t i = Is<Update>(*graph, of) ? 1 : 0; i < inputs.size(); ++i) pending.push_back(Value(inputs[i]));
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

/// after[u] = units that must run before unit u.
std::vector<std::set<int>> Predecessors(const Units& u) {
  std::vector<std::set<int>> before(u.units.size());
  std::vector<int> updater(u.graph->size(), -1);  // state -> unit that updates it
  for (NodeId id = 0; id < u.graph->size(); ++id) {
    if (Is<Update>(*u.graph, id)) updater[u.graph->nodes[id].inputs[0]] = u.unit_of[id];
  }
  for (int unit = 0; unit < static_cast<int>(u.units.size()); ++unit) {
    for (NodeId id : u.units[unit].nodes) {
      for (NodeId read : u.Reads(id, unit)) {
        if (u.unit_of[read] >= 0) before[unit].insert(u.unit_of[read]);
        if (Is<State>(*u.graph, read) && updater[read] >= 0 && updater[read] != unit) before[updater[read]].insert(unit);
      }
    }
  }
  return before;
}

/// Execution order of the units, the lowest first node first among those that are ready; empty when cyclic.
std::vector<int> Order(const Units& u) {
  const std::vector<std::set<int>> before = Predecessors(u);
  std::vector<int> order;
  std::vector<bool> done(u.units.size());
  while (order.size() < u.units.size()) {
    int next = -1;
    for (int unit = 0; unit < static_cast<int>(u.units.size()); ++unit) {
      if (done[unit]) continue;
      const bool ready = std::all_of(before[unit].begin(), before[unit].end(), [&](int b) { return done[b]; });
      if (ready && (next < 0 || u.units[unit].nodes[0] < u.units[next].nodes[0])) next = unit;
    }
    if (next < 0) return {};
    done[next] = true;
    order.push_back(next);
  }
  return order;
}

void Index(Units& u) {
  std::fill(u.unit_of.begin(), u.unit_of.end(), -1);
  for (int unit = 0; unit < static_cast<int>(u.units.size()); ++unit) {
    for (NodeId id : u.units[unit].nodes) u.unit_of[id] = unit;
  }
}

/// 0-dimensional arithmetic that a collective reads must be in memory.
bool FeedsCollective(const Units& u, NodeId id) {
  for (NodeId user : u.users[id]) {
    if (IsCollective(*u.graph, user)) return true;
    if (Is<Update>(*u.graph, user) && FeedsCollective(u, user)) return true;
  }
  return false;
}

/// Lets the unit that computes a value store it too, instead of a copy in a unit of its own, where no cycle arises.
void AttachStore(Units& u, NodeId store) {
  const NodeId value = u.Value(StoredOperand(*u.graph, store));
  const int producer = u.unit_of[value];
  const int alone = u.unit_of[store];
  if (producer < 0 || producer == alone || u.units[alone].nodes.size() != 1) return;
  // A library collective writes one buffer.
  if (u.units[producer].library && u.units[producer].nodes.size() > 1) return;
  Units attached = u;
  attached.units[producer].nodes.push_back(store);
  std::sort(attached.units[producer].nodes.begin(), attached.units[producer].nodes.end());
  attached.units.erase(attached.units.begin() + alone);
  Index(attached);
  if (!Order(attached).empty()) u = std::move(attached);
}

}  // namespace

absl::StatusOr<Units> CutIntoUnits(const Schedule& schedule, bool library) {
  const Graph& g = schedule.graph;
  Units u;
  u.graph = &g;
  ASSIGN_OR_RETURN(u.types, InferTypes(g));
  u.users = Users(g);
  u.unit_of.assign(g.size(), -1);
  for (const std::vector<NodeId>& kernel : schedule.kernels) u.units.push_back({kernel, false});
  Index(u);
  for (NodeId id = 0; id < g.size(); ++id) {
    if (u.unit_of[id] >= 0) continue;
    const bool arithmetic = Is<Pointwise>(g, id) || Is<Cast>(g, id);
    const bool own = IsCollective(g, id) || IsStore(g, id) ||
                     (arithmetic && (!u.types[id].shape.empty() || FeedsCollective(u, id)));
    if (own) u.units.push_back({{id}, library && IsCollective(g, id)});
  }
  Index(u);
  for (NodeId id = 0; id < g.size(); ++id) {
    if (IsStore(g, id)) AttachStore(u, id);
  }
  const std::vector<int> order = Order(u);
  if (order.empty() && !u.units.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("lower(", g.name, "): the kernels of the schedule depend on each other in a cycle"));
  }
  std::vector<Unit> ordered;
  for (int unit : order) ordered.push_back(std::move(u.units[unit]));
  u.units = std::move(ordered);
  Index(u);
  return u;
}

}  // namespace coconet
