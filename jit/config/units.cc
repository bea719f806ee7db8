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

/// `order`, ranks of the launches, with the launches of each chain one after the other: each chain
/// is one of it, and stands where its last one did.
std::vector<int> WithChains(const Launches& launches,
                            const std::vector<std::vector<NodeId>>& chains,
                            const std::vector<int>& order) {
  std::vector<int> merged_of(launches.size(), -1);
  std::vector<std::vector<int>> members;
  for (const std::vector<NodeId>& firsts : chains) {
    std::vector<int>& chain = members.emplace_back();
    for (NodeId first : firsts) {
      chain.push_back(launches.of[first]);
      merged_of[chain.back()] = static_cast<int>(members.size()) - 1;
    }
  }
  for (int launch : order) {
    if (merged_of[launch] >= 0) continue;
    merged_of[launch] = static_cast<int>(members.size());
    members.push_back({launch});
  }
  std::vector<Launch> merged;
  std::vector<int> rank(members.size());
  for (size_t i = 0; i < order.size(); ++i) rank[merged_of[order[i]]] = static_cast<int>(i);
  for (const std::vector<int>& chain : members) {
    std::set<int> after;
    for (int launch : chain) {
      for (int before : launches[launch].after) after.insert(merged_of[before]);
    }
    after.erase(static_cast<int>(merged.size()));
    merged.push_back({launches[chain[0]].nodes, {after.begin(), after.end()}});
  }
  std::vector<int> result;
  for (int launch : InOrder(merged, rank))
    result.insert(result.end(), members[launch].begin(), members[launch].end());
  return result;
}

/// The states that a collective sets for the next step, and for which nothing waits in this one.
std::set<NodeId> StatesOfNextStep(const Graph& g, const Launches& launches) {
  std::vector<bool> awaited(launches.size());
  for (const Launch& launch : launches.list) {
    for (int before : launch.after) awaited[before] = true;
  }
  std::set<NodeId> states;
  for (int launch = 0; launch < launches.size(); ++launch) {
    if (awaited[launch] || !Communicates(g, launches[launch].nodes[0])) continue;
    for (NodeId id : launches[launch].nodes) {
      if (Is<Update>(g, id)) states.insert(g.nodes[id].inputs[0]);
    }
  }
  return states;
}

/// The ranks of launches for InOrder where collectives run beside computation: these come as soon
/// as they can, so that they begin in the order in which their operands are computed, and the
/// others by level, so that what waits for collectives comes late; what waits for those of the step
/// before comes last.
std::vector<int> ConcurrentRanks(const Schedule& s, const Launches& launches) {
  std::vector<int> ranks = RanksByLevel(s.graph(), launches, s.levels());
  const std::set<NodeId> states = StatesOfNextStep(s.graph(), launches);
  const int late = ranks.empty() ? 0 : 1 + *absl::c_max_element(ranks);
  const auto waits = [&](NodeId id) {
    return absl::c_any_of(ValueOperands(s.graph(), id),
                          [&](NodeId operand) { return states.contains(operand); });
  };
  for (int launch = 0; launch < launches.size(); ++launch) {
    if (Communicates(s.graph(), launches[launch].nodes[0])) {
      ranks[launch] = -1;
    } else if (absl::c_any_of(launches[launch].nodes, waits)) {
      ranks[launch] += late;
    }
  }
  return ranks;
}

/// By node: it is computed again for what takes it (Recompute), and late: from the cast that tells
/// a copy from what it copies, on to where operations are no longer elementwise.
std::vector<bool> CopiesOf(const TypedGraph& program) {
  std::vector<bool> copies(program.size());
  for (NodeId id = 0; id < program.size(); ++id) {
    if (!IsElementwise(program.op(id))) continue;
    const auto* cast = As<Cast>(program.graph(), id);
    copies[id] =
        (cast != nullptr && cast->dtype == program.type(program.inputs(id)[0]).dtype) ||
        absl::c_any_of(program.inputs(id), [&](NodeId operand) { return copies[operand]; });
  }
  return copies;
}

/// `order` with launches that only compute copies right before the first that takes these.
std::vector<int> WithCopiesLate(const Schedule& s, const Launches& launches,
                                const std::vector<int>& order) {
  const std::vector<bool> copies = CopiesOf(s.program());
  std::vector<bool> late(launches.size()), has_taker(launches.size()), done(launches.size());
  for (const Launch& launch : launches.list) {
    for (int before : launch.after) has_taker[before] = true;
  }
  for (int launch = 0; launch < launches.size(); ++launch) {
    late[launch] = has_taker[launch] &&
                   absl::c_all_of(launches[launch].nodes, [&](NodeId id) { return copies[id]; });
  }
  std::vector<int> result;
  const auto add = [&](int first) {
    std::vector<int> stack = {first};
    while (!stack.empty()) {
      const int launch = stack.back();
      const auto waiting = absl::c_find_if(
          launches[launch].after, [&](int before) { return late[before] && !done[before]; });
      if (!done[launch] && waiting != launches[launch].after.end()) {
        stack.push_back(*waiting);
        continue;
      }
      stack.pop_back();
      if (!done[launch]) result.push_back(launch);
      done[launch] = true;
    }
  };
  for (int launch : order) {
    if (!late[launch]) add(launch);
  }
  return result;
}

/// The ranks of launches for InOrder where the schedule gives an order. A launch with stores that
/// were launches of their own has the rank of what computes their values.
std::vector<int> IssuedRanks(const Schedule& s, const Launches& launches) {
  std::vector<int> ranks(launches.size(), static_cast<int>(s.issued().size()));
  for (int i = 0; i < std::ssize(s.issued()); ++i) {
    int& rank = ranks[launches.of[s.issued()[i]]];
    rank = std::min(rank, i);
  }
  return ranks;
}

/// The order that launches run in: the schedule's own where it has one, else by ConcurrentRanks, or
/// by first node where dependencies leave a choice. Shorter than their list where they wait for
/// each other in a cycle. Launches of an overlap, and of a bucket that `library` does, follow one
/// another.
std::vector<int> OrderOf(const Schedule& s, const Launches& launches, LibraryDoes library,
                         bool concurrent = false) {
  std::vector<int> ranks(launches.size());
  if (!s.issued().empty())
    ranks = IssuedRanks(s, launches);
  else if (concurrent)
    ranks = ConcurrentRanks(s, launches);
  std::vector<int> order = InOrder(launches.list, ranks);
  if (static_cast<int>(order.size()) != launches.size()) return order;
  if (s.issued().empty()) order = WithCopiesLate(s, launches, order);
  std::vector<std::vector<NodeId>> chains = s.overlaps();
  absl::c_copy_if(s.buckets(), std::back_inserter(chains),
                  [&](const auto& bucket) { return DoneBy(library, s.graph(), bucket[0]); });
  return chains.empty() ? order : WithChains(launches, chains, order);
}

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
    return static_cast<int>(OrderOf(s_, launches, library_).size()) == launches.size();
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
    return absl::FailedPreconditionError(absl::StrCat(
        "lower(", g.name, "): the kernels of the schedule depend on each other in a cycle"));
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
