#include "jit/config/units.h"

#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "coconet/ir/operand_index.h"
#include "coconet/schedule/prologue.h"
#include "jit/config/buckets.h"
#include "jit/config/launch_order.h"

namespace coconet {

bool IsStore(const Graph& g, NodeId id) { return Is<Update>(g, id) || Is<Output>(g, id); }
NodeId StoredOperand(const Graph& g, NodeId store) { return g.nodes[store].inputs.back(); }

bool Units::IsScalar(NodeId id) const {
  const Op& op = graph().nodes[id].op;
  if (RoleOf(op) != Role::kConstant && !IsComputation(op)) return false;
  return type(id).shape.empty() && unit_of[id] < 0;
}

bool Units::ComputesInPhases(int unit, NodeId id) const {
  return unit_of[id] == unit && !IsOfPrologue(graph(), id);
}

bool Units::IsThere(NodeId id, int unit) const {
  if (Is<Input>(graph(), id)) return true;
  const auto chain =
      absl::c_find_if(chains, [&](const Chain& c) { return c.first <= unit && unit <= c.last; });
  const int before = chain == chains.end() ? unit : chain->first;
  return unit_of[id] >= 0 && unit_of[id] < before;
}

RowsInUse Units::RowsOfProduct(NodeId product, int unit) const {
  const RowsInUse& in_use = rows[product];
  return !in_use.all() && units[unit].library && IsThere(in_use.counts, unit) ? in_use
                                                                              : RowsInUse{};
}

NodeId Units::CountsBeforeAllToAll(NodeId id) const {
  const int unit = unit_of[id];
  const RowsInUse& in_use = rows[id];
  if (!Is<AllToAll>(graph(), id) || unit < 0 || !units[unit].library || in_use.all() ||
      NumElements(type(id).shape) == 0)
    return -1;
  const NodeId before = CountsBefore(program, id, in_use.counts);
  const bool are_there =
      before >= 0 && IsThere(Value(before), unit) && IsThere(Value(in_use.counts), unit);
  return are_there ? Value(before) : -1;
}

std::set<NodeId> Units::Reads(NodeId id, int unit) const {
  std::set<NodeId> reads;
  std::set<NodeId> seen;
  std::vector<NodeId> pending;
  const auto expand = [&](NodeId of) {
    for (NodeId operand : ValueOperands(graph(), of)) {
      if (seen.insert(Value(operand)).second) pending.push_back(Value(operand));
    }
  };
  expand(id);
  while (!pending.empty()) {
    const NodeId next = pending.back();
    pending.pop_back();
    if (IsScalar(next)) {
      expand(next);
    } else if (!ComputesInPhases(unit, next)) {
      reads.insert(next);
    }
  }
  return reads;
}

bool DoneBy(LibraryDoes library, const Graph& g, NodeId id) {
  if (!Communicates(g, id)) return false;
  if (!IsKernelWork(g, id)) return true;
  return library == LibraryDoes::kAll ||
         (library == LibraryDoes::kOverAllRanks && SpanOf(g.nodes[id].op) == Span::kAll);
}

namespace {

/// Whether a node can write over its operand: element by element, and of collectives sums and
/// broadcasts.
bool WorksInPlace(const TypedGraph& program, NodeId id) {
  const Graph& g = program.graph();
  const Node& node = g.nodes[id];
  switch (RoleOf(node.op)) {
    case Role::kDeclaration:
    case Role::kConstant:
    case Role::kElementwise:
    case Role::kFold:
    case Role::kTotal:
    case Role::kShard:
    case Role::kStore:
      return true;
    case Role::kView:
      return !MovesElements(node.op, program.type(id).shape, program.type(node.inputs[0]).shape);
    case Role::kCollective:
    case Role::kTransfer:
      return Is<AllReduce>(g, id) || Is<Broadcast>(g, id);
    case Role::kPooling:
    case Role::kScatter:
    case Role::kProduct:
    case Role::kSend:
    case Role::kOpaque:
    case Role::kNone:
      return false;
  }
  CC_CHECK(false);
}

/// The launches of a schedule with stores attached to those that compute their values, instead of
/// a copy in a launch of its own.
class Attaching {
 public:
  Attaching(const Schedule& s, const std::vector<bool>& each, LibraryDoes library)
      : s_(s),
        each_(each),
        library_(library),
        overlap_of_(s.launches().size(), -1),
        not_in_place_(s.launches().size()) {
    for (int launch = 0; launch < s.launches().size(); ++launch) {
      for (NodeId id : s.launches()[launch].nodes) {
        if (!WorksInPlace(s.program(), id)) not_in_place_[launch].push_back(id);
      }
    }
    for (size_t i = 0; i < s.overlaps().size(); ++i) {
      for (NodeId first : s.overlaps()[i])
        overlap_of_[s.launches().of[first]] = static_cast<int>(i);
    }
  }

  /// As many as leave no cycle, the first stores first.
  Launches Run() const {
    std::vector<NodeId> kept;
    for (NodeId id = 0; id < s_.graph().size(); ++id) {
      if (IsStore(s_.graph(), id)) kept.push_back(id);
    }
    if (!Runs(s_.launches())) return s_.launches();
    // A store that closes a cycle does so whatever else is attached, since no launch waits for a
    // store: so the first such store is found by halving.
    for (size_t sure = 0; !Runs(JoinedWith(kept));) {
      size_t good = sure, bad = kept.size();  // numbers of first stores, without and with a cycle
      while (bad - good > 1) {
        const size_t half = good + (bad - good) / 2;
        (Runs(JoinedWith({kept.begin(), kept.begin() + half})) ? good : bad) = half;
      }
      sure = good;
      kept.erase(kept.begin() + sure);
    }
    return JoinedWith(kept);
  }

 private:
  NodeId ValueOf(NodeId store) const {
    return s_.program().value(StoredOperand(s_.graph(), store));
  }

  Launches JoinedWith(const std::vector<NodeId>& stores) const {
    const Launches& launches = s_.launches();
    std::vector<int> into(launches.size());
    absl::c_iota(into, 0);
    std::vector<bool> has_store(launches.size());
    for (NodeId store : stores) {
      const int launch = launches.of[store];
      if (launches[launch].nodes.size() != 1) continue;
      const int producer = launches.of[ValueOf(store)];
      if (producer < 0 || !Takes(producer, store, has_store[producer])) continue;
      into[launch] = producer;
      has_store[producer] = true;
    }
    return Joined(launches, into);
  }

  /// A library writes one buffer, so it takes one store.
  bool Takes(int producer, NodeId store, bool has_store) const {
    const Graph& g = s_.graph();
    const std::vector<NodeId>& nodes = s_.launches()[producer].nodes;
    if (each_[store] != each_[ValueOf(store)]) return false;
    if (has_store && nodes.size() == 1 &&
        (!IsKernelWork(g, nodes[0]) || DoneBy(library_, g, nodes[0])))
      return false;
    return !OverwritesOperand(producer, store) && !OverwritesInOverlap(producer, store);
  }

  /// Whether a node takes a state and would write over it while it still reads it.
  bool OverwritesOperand(int producer, NodeId store) const {
    const Graph& g = s_.graph();
    if (!Is<Update>(g, store)) return false;
    const NodeId state = g.nodes[store].inputs[0];
    const auto takes = [&](NodeId operand) {
      while (Is<Update>(g, operand) && g.nodes[operand].inputs[0] != state)
        operand = StoredOperand(g, operand);
      return operand == state || Is<Update>(g, operand);
    };
    return absl::c_any_of(not_in_place_[producer],
                          [&](NodeId id) { return absl::c_any_of(g.nodes[id].inputs, takes); });
  }

  /// Whether `store` updates a state that another launch of the producer's overlap would see half
  /// new: one that works on a chunk after the producer does, or reads more than its own chunk.
  bool OverwritesInOverlap(int producer, NodeId store) const {
    const Graph& g = s_.graph();
    if (!Is<Update>(g, store) || overlap_of_[producer] < 0) return false;
    const NodeId state = g.nodes[store].inputs[0];
    bool is_later = false;
    const auto reads = [&](NodeId id) {
      const bool in_chunk =
          IsElementwise(g.nodes[id].op) && s_.type(id).shape == s_.type(state).shape;
      return (is_later || !in_chunk) && absl::c_linear_search(ValueOperands(g, id), state);
    };
    for (NodeId other : s_.overlaps()[overlap_of_[producer]]) {
      const bool is_producer = s_.launches().of[other] == producer;
      if (!is_producer && absl::c_any_of(s_.launch(other).nodes, reads)) return true;
      is_later = is_later || is_producer;
    }
    return false;
  }

  bool Runs(const Launches& launches) const {
    return static_cast<int>(OrderOf(s_, launches, library_, /*concurrent=*/false).size()) ==
           launches.size();
  }

  const Schedule& s_;
  const std::vector<bool>& each_;
  const LibraryDoes library_;
  std::vector<int> overlap_of_;                    // by launch: its overlap, -1: none
  std::vector<std::vector<NodeId>> not_in_place_;  // by launch: nodes that cannot work in place
};

}  // namespace

absl::StatusOr<Units> CutIntoUnits(const Schedule& schedule, LibraryDoes library,
                                   const Concurrency& concurrency, int tensors,
                                   std::vector<bool> each) {
  const Graph& g = schedule.graph();
  Units u;
  u.program = schedule.program();
  u.unit_of.assign(g.size(), -1);
  u.concurrent = concurrency.concurrent;
  u.tensors = tensors;
  u.each = std::move(each);
  u.each.resize(g.size());
  u.rows = FindRowsInUse(u.program);
  std::vector<bool> fused(g.size());
  for (const std::vector<NodeId>& kernel : schedule.kernels()) {
    for (NodeId id : kernel) fused[id] = true;
  }
  const Launches launches = Attaching(schedule, u.each, library).Run();
  std::vector<int> order = OrderOf(schedule, launches, library, concurrency.concurrent);
  if (concurrency.bucket > 0) {
    Buckets buckets(schedule, launches, library, u.each, concurrency.bucket);
    order = buckets.Reordered(order);
    u.buckets = buckets.ranges();
  }
  if (static_cast<int>(order.size()) != launches.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("lower(", NameForMessages(g),
                     "): the kernels of the schedule depend on each other in a cycle"));
  }
  for (int launch : order) {
    const std::vector<NodeId>& nodes = launches[launch].nodes;
    const bool by_library = absl::c_any_of(nodes, [&](NodeId id) {
      return (!IsKernelWork(g, id) || DoneBy(library, g, id)) && !fused[id];
    });
    for (NodeId id : nodes) u.unit_of[id] = static_cast<int>(u.units.size());
    u.units.push_back({nodes, by_library, launches[launch].after});
  }
  for (Unit& unit : u.units) {
    for (int& before : unit.after) before = u.unit_of[launches[before].nodes[0]];
  }
  for (const std::vector<NodeId>& bucket : schedule.buckets()) {
    if (!DoneBy(library, g, bucket[0])) continue;
    u.buckets.emplace_back(u.unit_of[bucket.front()], u.unit_of[bucket.back()]);
  }
  absl::c_sort(u.buckets);
  const auto needs = [&](Unit& unit, NodeId value) {
    if (u.unit_of[value] >= 0 && !absl::c_linear_search(unit.after, u.unit_of[value]))
      unit.after.push_back(u.unit_of[value]);
  };
  for (const std::vector<NodeId>& overlap : schedule.overlaps()) {
    u.chains.push_back({u.unit_of[overlap.front()], u.unit_of[overlap.back()], overlap});
  }
  absl::c_sort(u.chains, [](const auto& a, const auto& b) { return a.first < b.first; });
  for (int number = 0; number < std::ssize(u.units); ++number) {
    Unit& unit = u.units[number];
    if (!unit.library) continue;
    const NodeId id = unit.nodes[0];
    if (const RowsInUse rows = u.RowsOfProduct(id, number); Is<MatMul>(g, id) && !rows.all())
      needs(unit, rows.counts);
    if (const NodeId before = u.CountsBeforeAllToAll(id); before >= 0) {
      needs(unit, before);
      needs(unit, u.Value(u.rows[id].counts));
    }
  }
  return u;
}

}  // namespace coconet
