#include "jit/launches/order.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/ir/op_table.h"

namespace coconet {
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
std::set<NodeId> StatesOfNextStep(const TypedGraph& program, const Launches& launches) {
  std::vector<bool> awaited(launches.size());
  for (const Launch& launch : launches.list) {
    for (int before : launch.after) awaited[before] = true;
  }
  std::set<NodeId> states;
  for (int launch = 0; launch < launches.size(); ++launch) {
    if (awaited[launch] || !program.communicates(launches[launch].nodes[0])) continue;
    for (NodeId id : launches[launch].nodes) {
      if (Is<Update>(program.graph(), id)) states.insert(program.inputs(id)[0]);
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
  const std::set<NodeId> states = StatesOfNextStep(s.program(), launches);
  const int late = ranks.empty() ? 0 : 1 + *absl::c_max_element(ranks);
  const auto waits = [&](NodeId id) {
    return absl::c_any_of(ValueOperands(s.graph(), id),
                          [&](NodeId operand) { return states.contains(operand); });
  };
  for (int launch = 0; launch < launches.size(); ++launch) {
    if (s.program().communicates(launches[launch].nodes[0])) {
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

/// Collects AllReduces into buckets for WithBuckets.
class Buckets {
 public:
  Buckets(const Schedule& s, const Launches& launches, LibraryDoes library,
          const std::vector<bool>& each, int64_t bytes);

  BucketedOrder Collect(const std::vector<int>& order) &&;

 private:
  /// The AllReduce that the launch is; -1: it is something else.
  NodeId AllReduceOf(int launch) const;
  bool JoinsOpen(NodeId reduce) const;
  void Close();

  const Schedule& s_;
  const Launches& launches_;
  const LibraryDoes library_;
  const std::vector<bool>& each_;
  const int64_t most_bytes_;
  std::set<NodeId> in_kernels_;
  std::set<NodeId> in_overlaps_;  // first nodes of launches
  std::vector<int> open_;         // launches of the bucket that has not ended
  BucketedOrder result_;
  int64_t bytes_ = 0;  // of the open bucket
};

Buckets::Buckets(const Schedule& s, const Launches& launches, LibraryDoes library,
                 const std::vector<bool>& each, int64_t bytes)
    : s_(s), launches_(launches), library_(library), each_(each), most_bytes_(bytes) {
  for (const std::vector<NodeId>& kernel : s.kernels())
    in_kernels_.insert(kernel.begin(), kernel.end());
  for (const std::vector<NodeId>& overlap : s.overlaps())
    in_overlaps_.insert(overlap.begin(), overlap.end());
}

BucketedOrder Buckets::Collect(const std::vector<int>& order) && {
  for (int launch : order) {
    const NodeId reduce = AllReduceOf(launch);
    const bool communicates = absl::c_any_of(
        launches_[launch].nodes, [&](NodeId id) { return s_.program().communicates(id); });
    const bool waits = absl::c_any_of(
        launches_[launch].after, [&](int before) { return absl::c_linear_search(open_, before); });
    const bool joins = reduce >= 0 ? open_.empty() || JoinsOpen(reduce) : !communicates;
    if (waits || !joins || in_overlaps_.contains(launches_[launch].nodes[0])) Close();
    if (reduce < 0) {
      result_.order.push_back(launch);
      continue;
    }
    open_.push_back(launch);
    const TensorType& type = s_.type(reduce);
    bytes_ += NumElements(type.shape) * static_cast<int64_t>(SizeOf(type.dtype));
    if (bytes_ >= most_bytes_) Close();
  }
  Close();
  return std::move(result_);
}

NodeId Buckets::AllReduceOf(int launch) const {
  const NodeId id = launches_[launch].nodes[0];
  const bool is_one = Is<AllReduce>(s_.graph(), id) && DoneBy(library_, s_.program(), id) &&
                      !in_kernels_.contains(id) && !in_overlaps_.contains(id) && !each_[id];
  return is_one ? id : -1;
}

bool Buckets::JoinsOpen(NodeId reduce) const {
  const NodeId first = launches_[open_[0]].nodes[0];
  return s_.graph().nodes[first].op == s_.graph().nodes[reduce].op &&
         s_.type(first).dtype == s_.type(reduce).dtype;
}

void Buckets::Close() {
  const int first = static_cast<int>(result_.order.size());
  result_.order.insert(result_.order.end(), open_.begin(), open_.end());
  if (open_.size() > 1)
    result_.buckets.emplace_back(first, static_cast<int>(result_.order.size()) - 1);
  open_.clear();
  bytes_ = 0;
}

}  // namespace

bool DoneBy(LibraryDoes library, const TypedGraph& program, NodeId id) {
  if (!program.communicates(id)) return false;
  if (!program.is_kernel_work(id)) return true;
  return library == LibraryDoes::kAll ||
         (library == LibraryDoes::kOverAllRanks && program.span(id) == Span::kAll);
}

std::vector<int> OrderOf(const Schedule& s, const Launches& launches, LibraryDoes library,
                         bool concurrent) {
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
                  [&](const auto& bucket) { return DoneBy(library, s.program(), bucket[0]); });
  return chains.empty() ? order : WithChains(launches, chains, order);
}

BucketedOrder WithBuckets(const Schedule& s, const Launches& launches, LibraryDoes library,
                          const std::vector<bool>& each, int64_t bytes,
                          const std::vector<int>& order) {
  return Buckets(s, launches, library, each, bytes).Collect(order);
}

}  // namespace coconet
