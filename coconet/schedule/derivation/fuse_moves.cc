#include "coconet/schedule/derivation/fuse_moves.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "coconet/base/status.h"
#include "coconet/schedule/kernel_phases.h"
#include "coconet/schedule/prologue.h"

namespace coconet {
namespace {

using NodeSet = std::set<NodeId>;

/// Compilers take time and memory in the square of a kernel's length, and GPUs limit its arguments.
/// What one kernel of more operations would save in traffic is less than a hundredth.
constexpr size_t kMostInGroup = 128;

/// Finds fusions of a schedule.
class Moves {
 public:
  explicit Moves(const Schedule& s)
      : s_(s), p_(s.program()), g_(s.graph()), grouped_(g_.nodes.size()) {
    for (const auto& kernel : s.kernels()) {
      for (NodeId id : kernel) grouped_[id] = true;
    }
    FindElements();
    FindLevels();
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (Communicates(g_, id) && !grouped_[id]) collectives_.push_back(id);
    }
  }

  std::vector<std::vector<NodeId>> Groups() const {
    std::vector<NodeId> group(g_.nodes.size());
    absl::c_iota(group, 0);
    const auto find = [&](NodeId id) {
      while (group[id] != id) id = group[id] = group[group[id]];
      return id;
    };
    std::map<std::pair<NodeId, int>, NodeId> first_consumer;  // of a collective, in a level
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (!IsFree(id) || !Computes(id)) continue;
      for (NodeId operand : ValueOperands(g_, id)) {
        NodeId other = p_.value(operand);
        if (elements_[other] != elements_[id] || FoldsAll(p_, other)) continue;
        if (Communicates(g_, other))
          other = first_consumer.try_emplace({other, level_[id]}, id).first->second;
        const bool joins = IsFree(other) && Computes(other) && level_[other] == level_[id];
        if (!joins) continue;
        const auto [low, high] = std::minmax({find(id), find(other)});
        group[high] = low;
      }
    }
    JoinFolds(group, find);
    std::map<NodeId, std::vector<NodeId>> members;
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (IsFree(id) && Computes(id)) members[find(id)].push_back(id);
    }
    std::vector<std::vector<NodeId>> groups;
    for (const auto& [first, nodes] : members) {
      for (std::vector<NodeId>& part : Cut(nodes)) groups.push_back(std::move(part));
    }
    std::sort(groups.begin(), groups.end());
    return groups;
  }

  /// Groups a fold to a scalar with the other readers of its operand in the same level: one loop
  /// over the tensor serves both.
  template <class Find>
  void JoinFolds(std::vector<NodeId>& group, const Find& find) const {
    std::set<NodeId> folding;
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (FoldsAll(p_, id) && IsFree(id)) folding.insert(find(id));
    }
    // A reader of each declared tensor per level: a fold's group if there is one.
    std::map<std::pair<NodeId, int>, NodeId> readers;
    for (bool of_folds : {true, false}) {
      for (NodeId id = 0; id < g_.size(); ++id) {
        if (!IsFree(id) || !Computes(id) || folding.contains(find(id)) != of_folds) continue;
        for (NodeId operand : ValueOperands(g_, id)) {
          if (!g_.nodes[operand].inputs.empty() || p_.type(operand).shape != elements_[id].first)
            continue;
          const auto [first, is_new] = readers.try_emplace({operand, level_[id]}, id);
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
    std::vector<std::vector<NodeId>> cores = s_.kernels();
    for (const auto& group : groups) {
      if (group.size() == 1) cores.push_back(group);
    }
    for (const auto& core : cores) {
      const NodeSet nodes = Extended(core, kind, groups);
      if (nodes.size() > core.size()) moves.push_back(FuseOf(nodes));
    }
    if (kind == FuseKind::kAllReduces) AddLone<AllReduce>(groups, &moves);
    if (kind == FuseKind::kReduceScatters) AddLone<ReduceScatter>(groups, &moves);
    if (absl::c_linear_search(kTileFuseKinds, kind)) AddTilesAlone(kind, &moves);
    return moves;
  }

 private:
  /// The group, or where it is larger than a kernel should be, parts of about the same size. Each
  /// part depends on earlier ones only, and few values go from part to part: an operation follows
  /// what computes its operands.
  std::vector<std::vector<NodeId>> Cut(const std::vector<NodeId>& group) const {
    const size_t parts = (group.size() + kMostInGroup - 1) / kMostInGroup;
    if (parts <= 1) return {group};
    const std::vector<NodeId> order = OperandsFirst(group);
    std::vector<std::vector<NodeId>> cut(parts);
    for (size_t i = 0; i < order.size(); ++i) cut[i * parts / order.size()].push_back(order[i]);
    for (std::vector<NodeId>& part : cut) std::sort(part.begin(), part.end());
    return cut;
  }

  /// The group depth first: what a launch comes after, right before it.
  std::vector<NodeId> OperandsFirst(const std::vector<NodeId>& group) const {
    const Launches& launches = s_.launches();
    std::set<int> open;  // launches of the group that are not in `order` or on the stack yet
    for (NodeId id : group) open.insert(launches.of[id]);
    std::set<int> sinks = open;
    for (int launch : open) {
      for (int before : launches[launch].after) sinks.erase(before);
    }
    std::vector<NodeId> order;
    std::vector<std::pair<int, size_t>> stack;  // a launch, and the next of those before it
    for (int sink : sinks) {
      open.erase(sink);
      stack.emplace_back(sink, 0);
      while (!stack.empty()) {
        auto& [launch, next] = stack.back();
        const std::vector<int>& after = launches[launch].after;
        while (next < after.size() && open.erase(after[next]) == 0) ++next;
        if (next < after.size()) {
          stack.emplace_back(after[next], 0);
          continue;
        }
        order.push_back(launches[launch].nodes[0]);
        stack.pop_back();
      }
    }
    return order;
  }

  bool IsFree(NodeId id) const {
    return !grouped_[id] && (!p_.type(id).shape.empty() || FoldsAll(p_, id));
  }
  bool Computes(NodeId id) const {
    return IsKernelWork(g_, id) && !Communicates(g_, id) && !g_.nodes[id].inputs.empty() &&
           !CrossesNarrow(id) && !FoldsColumns(id);
  }
  /// Folds dimensions that are not the last, in a kernel of its own.
  bool FoldsColumns(NodeId id) const {
    return As<Fold>(g_, id) != nullptr && !FoldsAll(p_, id) && !FoldsRows(p_, id);
  }
  /// A cast that a reduction over ranks alone takes, and can apply to what it reads.
  bool CrossesNarrow(NodeId id) const {
    if (!IsWidening(p_, id) || p_.users()[id].size() != 1) return false;
    const NodeId user = p_.users()[id][0];
    return (As<AllReduce>(g_, user) || As<ReduceScatter>(g_, user)) && IsKernelWork(g_, user) &&
           !p_.type(user).shape.empty();
  }
  /// A reduction, with the cast that it can apply.
  void AddReduction(NodeId reduction, NodeSet* nodes) const {
    nodes->insert(reduction);
    const NodeId operand = g_.nodes[reduction].inputs[0];
    if (IsFree(operand) && CrossesNarrow(operand)) nodes->insert(operand);
  }
  /// Reductions that none of the groups and kernels takes, each with its cast.
  template <class Reduction>
  void AddLone(const std::vector<std::vector<NodeId>>& groups, std::vector<Fuse>* moves) const {
    NodeSet taken;
    for (const auto* takers : {&groups, &s_.kernels()}) {
      for (const std::vector<NodeId>& nodes : *takers) taken.merge(Feeding(nodes));
    }
    for (NodeId id : collectives_) {
      const NodeId operand = g_.nodes[id].inputs[0];
      const bool is_lone = As<Reduction>(g_, id) && IsFree(id) && !taken.contains(id);
      if (is_lone && IsFree(operand) && CrossesNarrow(operand)) moves->push_back({{operand, id}});
    }
  }
  /// Products that fit tiles and that none of the moves takes, each with what communicates its
  /// elements as they are.
  void AddTilesAlone(FuseKind kind, std::vector<Fuse>* moves) const {
    NodeSet taken;
    for (const Fuse& move : *moves) taken.insert(move.nodes.begin(), move.nodes.end());
    for (NodeId product = 0; product < g_.size(); ++product) {
      if (!IsFree(product) || taken.contains(product) || !FitsTiles(p_, product)) continue;
      NodeSet nodes = {product};
      for (NodeId user : p_.users()[product]) {
        const bool joins = As<Send>(g_, user) || (Communicates(g_, user) && IsKernelWork(g_, user)),
                   reduces = As<AllReduce>(g_, user) || As<ReduceScatter>(g_, user);
        if (joins && reduces == (kind == FuseKind::kAwaited) && IsFree(user)) AddPush(user, &nodes);
      }
      if (nodes.size() > 1) moves->push_back(FuseOf(nodes));
    }
  }
  bool SameShape(NodeId id, const std::vector<NodeId>& nodes) const {
    return elements_[id] == elements_[nodes[0]];
  }

  /// elements_[id]: the shape whose elements a kernel of the node runs over: of a fold its
  /// operand's, and of what is computed from folded rows that of the rows.
  void FindElements() {
    const std::vector<bool>& each = p_.each();
    std::vector<bool> of_rows(g_.nodes.size());
    for (NodeId id = 0; id < g_.size(); ++id) {
      elements_.push_back({p_.type(id).shape, each[id]});
      if (As<Fold>(g_, id)) {
        elements_[id] = {p_.type(g_.nodes[id].inputs[0]).shape, each[id]};
        of_rows[id] = FoldsRows(p_, id);
        continue;
      }
      if (!As<Pointwise>(g_, id) && !As<Cast>(g_, id)) continue;
      for (NodeId operand : g_.nodes[id].inputs) {
        if (!of_rows[operand] || p_.type(operand).shape != p_.type(id).shape) continue;
        elements_[id] = elements_[operand];
        of_rows[id] = true;
      }
    }
  }
  /// level_[id]: how many launches at least come before, none of which can be one with the next;
  /// as many as the users of the node allow. Nodes of one level that are connected make a group,
  /// and what lies between groups has levels in between, so that groups never wait for each other.
  void FindLevels() {
    level_ = LevelsOf(p_, [&](NodeId value, NodeId id) {
      if (g_.nodes[value].inputs.empty()) return false;
      if (FoldsAll(p_, value) || Communicates(g_, id)) return true;
      if (Communicates(g_, value)) return false;  // counted before it
      // Scalars are computed where they are needed.
      const auto is_scalar = [&](NodeId n) { return p_.type(n).shape.empty() && !FoldsAll(p_, n); };
      if (is_scalar(value) || is_scalar(id)) return false;
      const bool compute = IsFree(value) && Computes(value) && IsFree(id) && Computes(id);
      return !compute || elements_[value] != elements_[id];
    });
  }
  /// A free AllGather right behind a free ReduceScatter.
  bool IsFreePair(NodeId gather) const {
    if (!As<AllGather>(g_, gather) || !IsFree(gather)) return false;
    const NodeId operand = g_.nodes[gather].inputs[0];
    return As<ReduceScatter>(g_, operand) && IsFree(operand);
  }

  /// Adds a collective or send and what stores its result: a push can store there directly.
  void AddPush(NodeId push, NodeSet* nodes) const {
    nodes->insert(push);
    for (std::vector<NodeId> stack = {push}; !stack.empty();) {
      const NodeId value = stack.back();
      stack.pop_back();
      for (NodeId id : p_.users()[value]) {
        const bool updates = As<Update>(g_, id) && g_.nodes[id].inputs[1] == value;
        if ((updates || As<Output>(g_, id)) && IsFree(id)) nodes->insert(id);
        if (updates) stack.push_back(id);
      }
    }
  }

  NodeSet WithPair(NodeSet nodes, NodeId gather) const {
    AddReduction(g_.nodes[gather].inputs[0], &nodes);
    AddPush(gather, &nodes);
    return nodes;
  }

  /// The collectives whose values the nodes take.
  NodeSet Feeding(const std::vector<NodeId>& nodes) const {
    NodeSet feeding;
    for (NodeId id : nodes) {
      if (Communicates(g_, id)) continue;
      for (NodeId operand : ValueOperands(g_, id)) {
        const NodeId value = p_.value(operand);
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
      case FuseKind::kArrivals:
        return WithFeeding<AllToAll>(core);
      case FuseKind::kExchanges:
        return WithPushes<AllToAll>(core);
      case FuseKind::kConsumers:
        return WithConsumers(core, groups);
      case FuseKind::kFoldSums:
        return WithFoldSums(core);
      case FuseKind::kAfterFolds:
        return WithAfterFolds(core, groups);
      case FuseKind::kPrologue:
        return WithPrologue(core);
      case FuseKind::kEpilogue:
      case FuseKind::kAwaited:
        return WithTiles(core, kind);
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
      if (As<Collective>(g_, id)) AddReduction(id, &nodes);
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
    for (NodeId id : collectives_) {
      if (!As<Collective>(g_, id) || !IsFree(id)) continue;
      if (absl::c_binary_search(core, g_.nodes[id].inputs[0])) AddPush(id, &nodes);
    }
    return nodes;
  }

  NodeSet WithConsumers(const std::vector<NodeId>& core,
                        const std::vector<std::vector<NodeId>>& groups) const {
    NodeSet nodes(core.begin(), core.end());
    const auto brings = [&](NodeId id) { return As<AllGather>(g_, id) || As<AllToAll>(g_, id); };
    if (absl::c_none_of(core, brings)) return nodes;
    const auto consumes = [&](NodeId id) {
      const absl::Span<const NodeId> operands = ValueOperands(g_, id);
      return absl::c_any_of(operands, [&](NodeId operand) {
        const NodeId value = p_.value(operand);
        return brings(value) && absl::c_binary_search(core, value);
      });
    };
    for (const auto& group : groups) {
      if (!SameShape(group[0], core) || absl::c_none_of(group, consumes)) continue;
      nodes.insert(group.begin(), group.end());
    }
    return nodes;
  }

  NodeSet WithPrologue(const std::vector<NodeId>& core) const {
    NodeSet nodes(core.begin(), core.end());
    for (NodeId id : core) {
      for (NodeId operand : ValueOperands(g_, id)) {
        if (IsFree(operand) && FitsPrologue(p_, operand)) nodes.insert(operand);
      }
    }
    return nodes;
  }

  NodeSet WithTiles(const std::vector<NodeId>& core, FuseKind kind) const {
    NodeSet nodes(core.begin(), core.end());
    if (TiledProductOf(p_, core) >= 0) return nodes;
    for (NodeId id : core) {
      for (NodeId operand : ValueOperands(g_, id)) {
        const NodeId product = p_.value(operand);
        if (!IsFree(product) || !FitsTiles(p_, product) || !SameShape(product, core)) continue;
        if (IsOfPrologue(p_, core, product) != (kind == FuseKind::kAwaited)) continue;
        nodes.insert(product);
        return nodes;
      }
    }
    return nodes;
  }

  /// The AllReduces of the core's folds.
  NodeSet WithFoldSums(const std::vector<NodeId>& core) const {
    NodeSet nodes(core.begin(), core.end());
    for (NodeId id : collectives_) {
      if (!As<AllReduce>(g_, id)) continue;
      if (const NodeId fold = FoldBelow(p_, id); fold >= 0 && nodes.contains(fold))
        nodes.insert(id);
    }
    return nodes;
  }

  /// The core, the AllReduces of its folds, and the groups that take these, or the folds
  /// themselves.
  NodeSet WithAfterFolds(const std::vector<NodeId>& core,
                         const std::vector<std::vector<NodeId>>& groups) const {
    const NodeSet with_sums = WithFoldSums(core);
    if (absl::c_none_of(with_sums, [&](NodeId id) { return p_.type(id).shape.empty(); }))
      return {core.begin(), core.end()};
    std::vector<bool> follows(g_.nodes.size());  // computed from the folds, scalars in between
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (with_sums.contains(id)) follows[id] = FoldsAll(p_, id) || p_.type(id).shape.empty();
      if (with_sums.contains(id) || Communicates(g_, id)) continue;
      for (NodeId operand : ValueOperands(g_, id)) {
        const NodeId value = p_.value(operand);
        follows[id] = follows[id] || (follows[value] && p_.type(value).shape.empty());
      }
    }
    NodeSet nodes(core.begin(), core.end());
    for (const auto& group : groups) {
      if (with_sums.contains(group[0]) || !SameShape(group[0], core)) continue;
      if (absl::c_none_of(group, [&](NodeId id) { return follows[id]; })) continue;
      nodes.insert(group.begin(), group.end());
    }
    if (nodes.size() > core.size()) nodes.insert(with_sums.begin(), with_sums.end());
    return nodes;
  }

  const Schedule& s_;
  const TypedGraph& p_;
  const Graph& g_;
  std::vector<bool> grouped_;
  std::vector<NodeId> collectives_;  // in no kernel
  std::vector<std::pair<Shape, bool>>
      elements_;  // by node: their shape, and whether each tensor has them
  std::vector<int> level_;
};

}  // namespace

std::vector<std::vector<NodeId>> ComputeGroups(const Schedule& s) { return Moves(s).Groups(); }

std::vector<Fuse> FuseMoves(const Schedule& s, FuseKind kind) { return Moves(s).Of(kind); }

}  // namespace coconet
