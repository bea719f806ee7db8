#include "coconet/schedule/derivation/moves.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// The operations that Split may take: reductions over ranks, and folds and sends of replicated
/// tensors.
bool Splits(const TypedGraph& program, NodeId id) {
  const Graph& g = program.graph();
  const std::vector<TensorType>& types = program.types();
  if (As<AllReduce>(g, id)) return !types[id].shape.empty() && SpanOf(g.nodes[id].op) == Span::kAll;
  const bool folds = As<Fold>(g, id) != nullptr && types[id].shape.empty();
  return (folds || As<Send>(g, id)) && types[id].layout.kind == Layout::Kind::kReplicated &&
         !types[g.nodes[id].inputs[0]].shape.empty();
}

/// Which spans of ranks a graph's collectives on tensors have.
struct Spans {
  bool slices = false;         // over all ranks, what scatters or gathers
  bool slices_across = false;  // the same across nodes
  bool by_node = false;        // some are not over all ranks
};
Spans SpansOf(const Graph& g) {
  Spans spans;
  for (NodeId id = 0; id < g.size(); ++id) {
    const Span span = SpanOf(g.nodes[id].op);
    const bool slices = As<ReduceScatter>(g, id) || As<AllGather>(g, id);
    spans.slices |= slices && span == Span::kAll;
    spans.slices_across |= slices && span == Span::kAcross;
    spans.by_node |= span != Span::kAll;
  }
  return spans;
}

/// Whether a kind may still be applied in the fixed order of kinds: split and slice before any
/// split by node, reorder before any gather or scatter across nodes, and AllReduces are split by
/// node only where no collective over all ranks scatters or gathers.
bool Fits(const Spans& spans, MoveKind::Kind kind) {
  switch (kind) {
    case MoveKind::Kind::kReduceByNode:
      return !spans.slices;
    case MoveKind::Kind::kReorder:
      return !spans.slices_across;
    case MoveKind::Kind::kSplit:
    case MoveKind::Kind::kSlice:
      return !spans.by_node;
    case MoveKind::Kind::kSlicesByNode:
    case MoveKind::Kind::kFuse:
      return true;
  }
  CC_CHECK(false);
}

std::vector<Transformation> FusionsOf(const Schedule& s, FuseKind kind, bool by_node) {
  std::vector<Transformation> moves;
  for (Fuse& fuse : FuseMoves(s, kind)) {
    if (!by_node || !ReachesAllRanks(s.graph(), fuse)) moves.push_back(std::move(fuse));
  }
  return moves;
}

/// SplitByNode of a collective, where the kind of moves asks for it.
std::optional<Transformation> ByNode(const TypedGraph& program, NodeId id, const MoveKind& kind) {
  const Graph& g = program.graph();
  const std::vector<TensorType>& types = program.types();
  if (!kind.by_node() || types[id].shape.empty() || SpanOf(g.nodes[id].op) != Span::kAll)
    return std::nullopt;
  if (kind.kind == MoveKind::Kind::kSlicesByNode) {
    if (As<ReduceScatter>(g, id)) return SplitByNode{id, types[id].layout.dim};
    if (As<AllGather>(g, id)) return SplitByNode{id, types[g.nodes[id].inputs[0]].layout.dim};
    return std::nullopt;
  }
  const int dims = static_cast<int>(types[id].shape.size());
  if (!As<AllReduce>(g, id) || (kind.dim != Layout::kFlat && (dims == 1 || kind.dim >= dims)))
    return std::nullopt;
  return SplitByNode{id, kind.dim};
}

/// Whether a gather brings something that is computed with, which Reorder may move.
bool IsComputedWith(const TypedGraph& program, NodeId gather) {
  std::vector<NodeId> pending = {gather};
  while (!pending.empty()) {
    const NodeId value = pending.back();
    pending.pop_back();
    for (NodeId user : program.users()[value]) {
      if (As<Update>(program.graph(), user)) {
        pending.push_back(user);
      } else if (!As<Output>(program.graph(), user)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::vector<MoveKind> MoveKindsOf(const TypedGraph& program, bool by_node) {
  size_t most_dims = 1;
  for (NodeId id = 0; id < program.size(); ++id) {
    if (Splits(program, id))
      most_dims = std::max(most_dims, program.type(program.inputs(id)[0]).shape.size());
  }
  std::vector<MoveKind> kinds;
  const auto add_splits = [&](MoveKind::Kind kind) {
    kinds.push_back({kind});
    for (size_t dim = 0; dim < most_dims && most_dims > 1; ++dim)
      kinds.push_back({kind, static_cast<int>(dim)});
  };
  add_splits(MoveKind::Kind::kSplit);
  if (by_node) add_splits(MoveKind::Kind::kReduceByNode);
  kinds.push_back({MoveKind::Kind::kReorder});
  kinds.push_back({MoveKind::Kind::kSlice});
  if (by_node) kinds.push_back({MoveKind::Kind::kSlicesByNode});
  for (FuseKind fuse : kFuseKinds) kinds.push_back({MoveKind::Kind::kFuse, Layout::kFlat, fuse});
  return kinds;
}

bool ReachesAllRanks(const Graph& g, const Fuse& fuse) {
  return absl::c_any_of(fuse.nodes, [&](NodeId id) {
    return Communicates(g, id) && SpanOf(g.nodes[id].op) == Span::kAll;
  });
}

std::vector<Transformation> Moves(const Schedule& s, const MoveKind& kind, bool by_node) {
  std::vector<Transformation> moves;
  if (kind.kind == MoveKind::Kind::kFuse) return FusionsOf(s, kind.fuse, by_node);
  if (!s.kernels().empty() || !Fits(SpansOf(s.graph()), kind.kind)) return moves;
  for (NodeId id = 0; id < s.graph().size(); ++id) {
    const auto* state = As<State>(s.graph(), id);
    if (kind.kind == MoveKind::Kind::kSplit && Splits(s.program(), id)) {
      // Flat, a vector is cut over its one dimension.
      const int dims = static_cast<int>(s.type(s.program().inputs(id)[0]).shape.size());
      if (kind.dim == Layout::kFlat || (dims > 1 && kind.dim < dims))
        moves.push_back(Split{id, kind.dim});
    }
    if (std::optional<Transformation> split = ByNode(s.program(), id, kind))
      moves.push_back(*std::move(split));
    if (kind.kind == MoveKind::Kind::kReorder && As<AllGather>(s.graph(), id) &&
        IsComputedWith(s.program(), id))
      moves.push_back(Reorder{id});
    const bool is_open = state != nullptr && state->type.layout.kind == Layout::Kind::kAuto;
    if (kind.kind == MoveKind::Kind::kSlice && is_open) moves.push_back(Slice{id});
  }
  return moves;
}

std::optional<Schedule> Everywhere(Schedule s, const MoveKind& kind, bool by_node, int64_t& tries,
                                   Asker& asker) {
  // A move changes the numbers of nodes, but few before its own: those that were refused there are
  // tried again after all others, if any was made.
  size_t refused = 0;
  for (bool changed = false;;) {
    const std::vector<Transformation> moves = Moves(s, kind, by_node);
    if (static_cast<int64_t>(moves.size()) > tries) return std::nullopt;
    for (; refused < moves.size(); ++refused) {
      if (--tries < 0 || !asker.GoOn(s)) return std::nullopt;
      absl::StatusOr<Schedule> moved = Apply(s, moves[refused]);
      if (!moved.ok()) continue;
      s = *std::move(moved);
      changed = true;
      break;
    }
    if (refused < moves.size()) continue;
    if (!changed) return s;
    refused = 0;
    changed = false;
  }
}

}  // namespace coconet
