#include "coconet/schedule/fuse_moves.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "coconet/schedule/kernel_phases.h"
#include "coconet/schedule/steps.h"

namespace coconet {
namespace {

using NodeSet = std::set<NodeId>;

/// A schedule seen by who looks for fusions.
class Moves {
 public:
  explicit Moves(const Schedule& s)
      : s_(s), g_(s.graph), values_(AssignedValues(g_)), grouped_(g_.nodes.size()) {
    absl::StatusOr<std::vector<TensorType>> types = InferTypes(g_);
    CC_CHECK(types.ok());
    types_ = *std::move(types);
    for (const auto& kernel : s.kernels) {
      for (NodeId id : kernel) grouped_[id] = true;
    }
    FindElements();
  }

  std::vector<std::vector<NodeId>> Groups() const {
    const std::vector<int> stage = Stages(g_);
    std::vector<NodeId> group(g_.nodes.size());
    std::iota(group.begin(), group.end(), 0);
    const auto find = [&](NodeId id) {
      while (group[id] != id) id = group[id];
      return id;
    };
    std::map<std::pair<NodeId, int>, NodeId> first_consumer;  // of a collective, in a stage
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (!IsFree(id) || !Computes(id)) continue;
      for (NodeId operand : ValueOperands(g_, id)) {
        NodeId other = values_[operand];
        if (elements_[other] != elements_[id] || FoldsAll(g_, types_, other)) continue;
        if (Communicates(g_, other))
          other = first_consumer.try_emplace({other, stage[id]}, id).first->second;
        const bool joins = IsFree(other) && Computes(other) && stage[other] == stage[id];
        if (!joins) continue;
        const auto [low, high] = std::minmax({find(id), find(other)});
        group[high] = low;
      }
    }
    JoinFolds(stage, group, find);
    std::map<NodeId, std::vector<NodeId>> members;
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (IsFree(id) && Computes(id)) members[find(id)].push_back(id);
    }
    std::vector<std::vector<NodeId>> groups;
    for (auto& [first, nodes] : members) groups.push_back(std::move(nodes));
    return groups;
  }

  /// What folds to a scalar goes with what else reads the same tensor in that stage: one loop over
  /// it serves both.
  template <class Find>
  void JoinFolds(const std::vector<int>& stage, std::vector<NodeId>& group,
                 const Find& find) const {
    std::set<NodeId> folding;
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (FoldsAll(g_, types_, id) && IsFree(id)) folding.insert(find(id));
    }
    std::map<std::pair<NodeId, int>, NodeId>
        readers;  // of a declared tensor, in a stage: a fold's group if there is one
    for (bool of_folds : {true, false}) {
      for (NodeId id = 0; id < g_.size(); ++id) {
        if (!IsFree(id) || !Computes(id) || folding.contains(find(id)) != of_folds) continue;
        for (NodeId operand : ValueOperands(g_, id)) {
          if (!g_.nodes[operand].inputs.empty() || types_[operand].shape != elements_[id].first)
            continue;
          const auto [first, is_new] = readers.try_emplace({operand, stage[id]}, id);
          if (is_new || elements_[first->second] != elements_[id] ||
              !folding.contains(find(first->second)))
            continue;
          const auto [low, high] = std::minmax({find(id), find(first->second)});
          const bool folds = folding.contains(low) || folding.contains(high);
          group[high] = low;
          if (folds) folding.insert(low);
        }
      }
    }
  }

  std::vector<Fuse> Of(FuseKind kind) const {
    const std::vector<std::vector<NodeId>> groups = Groups();
    std::vector<Fuse> moves;
    if (kind == FuseKind::kGroup) {
      for (const auto& group : groups) {
        if (group.size() > 1) moves.push_back({group});
      }
      return moves;
    }
    if (kind == FuseKind::kPair) {
      for (NodeId id = 0; id < g_.size(); ++id) {
        if (IsFreePair(id)) moves.push_back(FuseOf(WithPair({}, id)));
      }
      return moves;
    }
    std::vector<std::vector<NodeId>> cores = s_.kernels;
    for (const auto& group : groups) {
      if (group.size() == 1) cores.push_back(group);
    }
    for (const auto& core : cores) {
      const NodeSet nodes = Extended(core, kind, groups);
      if (nodes.size() > core.size()) moves.push_back(FuseOf(nodes));
    }
    return moves;
  }

 private:
  bool IsFree(NodeId id) const {
    return !grouped_[id] && (!types_[id].shape.empty() || FoldsAll(g_, types_, id));
  }
  bool Computes(NodeId id) const {
    return IsKernelWork(g_, id) && !Communicates(g_, id) && !g_.nodes[id].inputs.empty();
  }
  bool SameShape(NodeId id, const std::vector<NodeId>& nodes) const {
    return elements_[id] == elements_[nodes[0]];
  }

  /// elements_[id]: the shape whose elements a kernel of the node runs over: of a fold its
  /// operand's, and of what is computed from folded rows that of the rows.
  void FindElements() {
    const std::vector<bool> each = EachNodes(g_);
    std::vector<bool> of_rows(g_.nodes.size());
    for (NodeId id = 0; id < g_.size(); ++id) {
      elements_.push_back({types_[id].shape, each[id]});
      if (As<Fold>(g_, id)) {
        elements_[id] = {types_[g_.nodes[id].inputs[0]].shape, each[id]};
        of_rows[id] = FoldsRows(g_, types_, id);
        continue;
      }
      if (!As<Pointwise>(g_, id) && !As<Cast>(g_, id)) continue;
      for (NodeId operand : g_.nodes[id].inputs) {
        if (!of_rows[operand] || types_[operand].shape != types_[id].shape) continue;
        elements_[id] = elements_[operand];
        of_rows[id] = true;
      }
    }
  }
  /// A free AllGather right behind a free ReduceScatter.
  bool IsFreePair(NodeId gather) const {
    if (!As<AllGather>(g_, gather) || !IsFree(gather)) return false;
    const NodeId operand = g_.nodes[gather].inputs[0];
    return As<ReduceScatter>(g_, operand) && IsFree(operand);
  }

  /// Adds a gather or send and what stores its result: a push can store there directly.
  void AddPush(NodeId push, NodeSet* nodes) const {
    nodes->insert(push);
    for (NodeId id = push; id < g_.size(); ++id) {
      const bool stores = (As<Update>(g_, id) || As<Output>(g_, id)) && IsFree(id);
      if (stores && values_[ValueOperands(g_, id)[0]] == push) nodes->insert(id);
    }
  }

  NodeSet WithPair(NodeSet nodes, NodeId gather) const {
    nodes.insert(g_.nodes[gather].inputs[0]);
    AddPush(gather, &nodes);
    return nodes;
  }

  /// The collectives whose values the nodes take.
  NodeSet Feeding(const std::vector<NodeId>& nodes) const {
    NodeSet feeding;
    for (NodeId id : nodes) {
      if (Communicates(g_, id)) continue;
      for (NodeId operand : ValueOperands(g_, id)) {
        const NodeId value = values_[operand];
        if (Communicates(g_, value) && IsFree(value) && SameShape(value, nodes))
          feeding.insert(value);
      }
    }
    return feeding;
  }

  static Fuse FuseOf(const NodeSet& nodes) { return {{nodes.begin(), nodes.end()}}; }

  NodeSet Extended(const std::vector<NodeId>& core, FuseKind kind,
                   const std::vector<std::vector<NodeId>>& groups) const {
    switch (kind) {
      case FuseKind::kReduceScatters:
        return WithFeeding<ReduceScatter>(core);
      case FuseKind::kAllReduces:
        return WithFeeding<AllReduce>(core);
      case FuseKind::kPairs:
        return WithPairs(core);
      case FuseKind::kGathers:
        return WithPushes<AllGather>(core);
      case FuseKind::kSends:
        return WithPushes<Send>(core);
      case FuseKind::kConsumers:
        return WithConsumers(core, groups);
      case FuseKind::kFoldSums:
        return WithFoldSums(core);
      case FuseKind::kAfterFolds:
        return WithAfterFolds(core, groups);
      case FuseKind::kGroup:
      case FuseKind::kPair:
        break;
    }
    CC_CHECK(false);
  }

  template <class Collective>
  NodeSet WithFeeding(const std::vector<NodeId>& core) const {
    NodeSet nodes(core.begin(), core.end());
    for (NodeId id : Feeding(core)) {
      if (As<Collective>(g_, id)) nodes.insert(id);
    }
    return nodes;
  }

  NodeSet WithPairs(const std::vector<NodeId>& core) const {
    NodeSet nodes(core.begin(), core.end());
    for (NodeId id : Feeding(core)) {
      if (IsFreePair(id)) nodes = WithPair(std::move(nodes), id);
    }
    return nodes;
  }

  template <class Collective>
  NodeSet WithPushes(const std::vector<NodeId>& core) const {
    NodeSet nodes(core.begin(), core.end());
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (!As<Collective>(g_, id) || !IsFree(id)) continue;
      if (std::binary_search(core.begin(), core.end(), g_.nodes[id].inputs[0])) AddPush(id, &nodes);
    }
    return nodes;
  }

  NodeSet WithConsumers(const std::vector<NodeId>& core,
                        const std::vector<std::vector<NodeId>>& groups) const {
    NodeSet nodes(core.begin(), core.end());
    const auto consumes = [&](NodeId id) {
      const std::vector<NodeId> operands = ValueOperands(g_, id);
      return std::any_of(operands.begin(), operands.end(), [&](NodeId operand) {
        const NodeId value = values_[operand];
        return As<AllGather>(g_, value) && std::binary_search(core.begin(), core.end(), value);
      });
    };
    for (const auto& group : groups) {
      if (!SameShape(group[0], core) || std::none_of(group.begin(), group.end(), consumes))
        continue;
      nodes.insert(group.begin(), group.end());
    }
    return nodes;
  }

  /// The AllReduces of the core's folds.
  NodeSet WithFoldSums(const std::vector<NodeId>& core) const {
    NodeSet nodes(core.begin(), core.end());
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (!As<AllReduce>(g_, id) || grouped_[id]) continue;
      if (const NodeId fold = FoldBelow(g_, types_, id); fold >= 0 && nodes.contains(fold))
        nodes.insert(id);
    }
    return nodes;
  }

  /// The core, the AllReduces of its folds, and the groups that take these, or the folds
  /// themselves.
  NodeSet WithAfterFolds(const std::vector<NodeId>& core,
                         const std::vector<std::vector<NodeId>>& groups) const {
    const NodeSet with_sums = WithFoldSums(core);
    std::vector<bool> follows(g_.nodes.size());  // computed from the folds, scalars in between
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (with_sums.contains(id))
        follows[id] = FoldsAll(g_, types_, id) || types_[id].shape.empty();
      if (with_sums.contains(id) || Communicates(g_, id)) continue;
      for (NodeId operand : ValueOperands(g_, id)) {
        const NodeId value = values_[operand];
        follows[id] = follows[id] || (follows[value] && types_[value].shape.empty());
      }
    }
    NodeSet nodes(core.begin(), core.end());
    for (const auto& group : groups) {
      if (with_sums.contains(group[0]) || !SameShape(group[0], core)) continue;
      if (std::none_of(group.begin(), group.end(), [&](NodeId id) { return follows[id]; }))
        continue;
      nodes.insert(group.begin(), group.end());
    }
    if (nodes.size() > core.size()) nodes.insert(with_sums.begin(), with_sums.end());
    return nodes;
  }

  const Schedule& s_;
  const Graph& g_;
  const std::vector<NodeId> values_;
  std::vector<bool> grouped_;
  std::vector<TensorType> types_;
  std::vector<std::pair<Shape, bool>>
      elements_;  // by node: their shape, and whether each tensor has them
};

}  // namespace

std::vector<std::vector<NodeId>> ComputeGroups(const Schedule& s) { return Moves(s).Groups(); }

std::vector<Fuse> FuseMoves(const Schedule& s, FuseKind kind) { return Moves(s).Of(kind); }

}  // namespace coconet
