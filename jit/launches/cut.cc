#include "jit/launches/cut.h"

#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "coconet/ir/operand_index.h"
#include "jit/launches/lanes.h"
#include "jit/launches/order.h"

namespace coconet {

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
    const std::vector<NodeId>& nodes = s_.launches()[producer].nodes;
    if (each_[store] != each_[ValueOf(store)]) return false;
    if (has_store && nodes.size() == 1 &&
        (!s_.program().is_kernel_work(nodes[0]) || DoneBy(library_, s_.program(), nodes[0])))
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

absl::StatusOr<PlacedLaunches> CutIntoLaunches(const Schedule& schedule, LibraryDoes library,
                                               const Concurrency& concurrency, int tensors,
                                               std::vector<bool> each) {
  const Graph& g = schedule.graph();
  PlacedLaunches u;
  u.program = schedule.program();
  u.of.assign(g.size(), -1);
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
    BucketedOrder bucketed =
        WithBuckets(schedule, launches, library, u.each, concurrency.bucket, order);
    order = std::move(bucketed.order);
    u.buckets = std::move(bucketed.buckets);
  }
  if (static_cast<int>(order.size()) != launches.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("lower(", NameForMessages(g),
                     "): the kernels of the schedule depend on each other in a cycle"));
  }
  for (int launch : order) {
    const std::vector<NodeId>& nodes = launches[launch].nodes;
    const bool by_library = absl::c_any_of(nodes, [&](NodeId id) {
      return (!u.program.is_kernel_work(id) || DoneBy(library, u.program, id)) && !fused[id];
    });
    for (NodeId id : nodes) u.of[id] = u.size();
    u.list.push_back({launches[launch], by_library});
  }
  for (PlacedLaunch& launch : u.list) {
    for (int& before : launch.after) before = u.of[launches[before].nodes[0]];
  }
  for (const std::vector<NodeId>& bucket : schedule.buckets()) {
    if (!DoneBy(library, u.program, bucket[0])) continue;
    u.buckets.emplace_back(u.of[bucket.front()], u.of[bucket.back()]);
  }
  absl::c_sort(u.buckets);
  const auto needs = [&](PlacedLaunch& launch, NodeId value) {
    if (u.of[value] >= 0 && !absl::c_linear_search(launch.after, u.of[value]))
      launch.after.push_back(u.of[value]);
  };
  for (const std::vector<NodeId>& overlap : schedule.overlaps()) {
    u.chains.push_back({u.of[overlap.front()], u.of[overlap.back()], overlap});
  }
  absl::c_sort(u.chains, [](const auto& a, const auto& b) { return a.first < b.first; });
  for (int number = 0; number < u.size(); ++number) {
    PlacedLaunch& launch = u[number];
    if (!launch.library) continue;
    const NodeId id = launch.nodes[0];
    if (const RowsInUse rows = u.RowsOfProduct(id, number); Is<MatMul>(g, id) && !rows.all())
      needs(launch, rows.counts);
    if (const NodeId before = u.CountsBeforeAllToAll(id); before >= 0) {
      needs(launch, before);
      needs(launch, u.Value(u.rows[id].counts));
    }
  }
  PlaceOnLanes(concurrency.concurrent, u);
  return u;
}

}  // namespace coconet
