#include <numeric>
#include <optional>

#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "coconet/ir/op_table.h"
#include "coconet/ir/operand_index.h"
#include "coconet/schedule/rewrites.h"

namespace coconet {
namespace {

/// Analysis of a value when computation moves before a gather.
struct Placement {
  /// Type of its slices, where the moved computation can use them: the operands of gathers, moved
  /// values, and what updates assign of these.
  std::optional<TensorType> slices;
  bool from_gather = false;  // is, or is computed from, the gather in question
  bool moved = false;        // computed on slices from now on
  bool summed = false;       // a fold that takes slices from now on: what the ranks contribute is
                             // reduced over them
  std::vector<bool> takes_slices;  // by operand; empty where nothing changes
};

/// The maximal region of operations that can follow the gather's operand, by what infers on slices,
/// and how its nodes take their operands.
class Region {
 public:
  Region(const TypedGraph& program, NodeId gather)
      : g_(program.graph()), types_(program.types()), placements_(program.size()) {
    for (NodeId id = 0; id < g_.size(); ++id) Place(id, gather);
  }

  const Placement& operator[](NodeId id) const { return placements_[id]; }
  bool empty() const { return empty_; }

 private:
  void Place(NodeId id, NodeId gather) {
    const auto& inputs = g_.nodes[id].inputs;
    switch (RoleOf(g_.nodes[id].op)) {
      case Role::kElementwise:
      case Role::kFold:
      case Role::kProduct:
      case Role::kView:
      case Role::kPooling:
      case Role::kScatter:
      case Role::kSend:
        return PlaceComputation(id);
      case Role::kCollective:
        if (!As<AllGather>(g_, id)) return;
        placements_[id].slices = types_[inputs[0]];
        placements_[id].from_gather = id == gather;
        return;
      case Role::kStore:
        if (!As<Update>(g_, id)) return;
        placements_[id].slices = placements_[inputs[1]].slices;
        placements_[id].from_gather = placements_[inputs[1]].from_gather;
        return;
      case Role::kDeclaration:
      case Role::kConstant:
      case Role::kTotal:
      case Role::kShard:
      case Role::kTransfer:
      case Role::kOpaque:
      case Role::kNone:
        return;  // stays whole
    }
  }

  void PlaceComputation(NodeId id) {
    const auto& inputs = g_.nodes[id].inputs;
    std::vector<bool> takes_slices;
    bool fed = false;
    for (NodeId input : inputs) {
      takes_slices.push_back(placements_[input].from_gather);
      fed |= placements_[input].from_gather;
    }
    if (!fed) return;
    const absl::StatusOr<TensorType> sliced = TypeWith(id, takes_slices);
    if (!sliced.ok()) return;
    if (As<Fold>(g_, id) && sliced->shape.empty() &&
        types_[id].layout.kind == Layout::Kind::kReplicated) {
      empty_ = false;
      placements_[id].takes_slices = std::move(takes_slices);
      placements_[id].summed = true;
      return;
    }
    if (!sliced->layout.sliced()) return;
    // An operation that is already sliced, because of a sliced state, stays and takes the slices
    // instead of the gather's result.
    const bool is_sliced = types_[id].layout.sliced();
    if (is_sliced && *sliced != types_[id]) return;
    // What takes a local operand is another value on slices: of each part only its rank's.
    if (types_[id].layout == Layout::Local()) return;
    // Slices of other gathers are as good as ours where they are cut alike.
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (takes_slices[i] || !placements_[inputs[i]].slices.has_value()) continue;
      takes_slices[i] = true;
      const absl::StatusOr<TensorType> joined = TypeWith(id, takes_slices);
      takes_slices[i] = joined.ok() && *joined == *sliced;
    }
    empty_ = false;
    placements_[id].takes_slices = std::move(takes_slices);
    if (is_sliced) return;
    placements_[id].slices = *sliced;
    placements_[id].from_gather = placements_[id].moved = true;
  }

  /// Type of a node that takes these operands' slices.
  absl::StatusOr<TensorType> TypeWith(NodeId id, const std::vector<bool>& takes_slices) {
    // One node on operands of its own: they may be both whole and sliced.
    Graph site;
    std::vector<TensorType> types;
    const auto& inputs = g_.nodes[id].inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      types.push_back(takes_slices[i] ? *placements_[inputs[i]].slices : types_[inputs[i]]);
      site.Add(State{});
    }
    std::vector<NodeId> operands(inputs.size());
    std::iota(operands.begin(), operands.end(), 0);
    const NodeId node = site.Add(g_.nodes[id].op, std::move(operands));
    if (IsScaledProduct(g_, id) && !AlwaysCutsAtBlocks(types))
      return absl::FailedPreconditionError("slices may end within blocks of scales");
    return InferNode(site, node, types);
  }

  const Graph& g_;
  const std::vector<TensorType>& types_;
  std::vector<Placement> placements_;
  bool empty_ = true;
};

/// Writes the graph anew with the region before its gathers.
class Mover {
 public:
  Mover(const TypedGraph& program, const Region& region, NodeId gather)
      : g_(program.graph()),
        types_(program.types()),
        region_(region),
        gather_(*As<AllGather>(g_, gather)),
        out_{g_.name, {}, g_.lists},
        whole_(program.size(), -1),
        slices_(program.size(), -1) {}

  Graph Run() {
    for (NodeId id = 0; id < g_.size(); ++id) Emit(id);
    return std::move(out_);
  }

 private:
  void Emit(NodeId id) {
    const Placement& placement = region_[id];
    const auto& old_inputs = g_.nodes[id].inputs;
    std::vector<NodeId> inputs;
    for (size_t i = 0; i < old_inputs.size(); ++i) {
      const bool sliced = !placement.takes_slices.empty() && placement.takes_slices[i];
      inputs.push_back(sliced ? slices_[old_inputs[i]] : Whole(old_inputs[i]));
    }
    if (placement.summed) {
      whole_[id] = FoldOverRanks(out_, *As<Fold>(g_, id), inputs[0], types_[id].dtype);
      return;
    }
    const NodeId emitted = out_.Add(g_.nodes[id].op, inputs);
    if (placement.moved) {
      slices_[id] = emitted;
      return;
    }
    whole_[id] = emitted;
    if (As<AllGather>(g_, id)) slices_[id] = inputs[0];
    if (As<Update>(g_, id)) {
      slices_[id] = slices_[old_inputs[1]];
      if (placement.from_gather) whole_[id] = inputs[1];
    }
  }

  /// The value on every rank; moved values are gathered where something needs that.
  NodeId Whole(NodeId id) {
    if (whole_[id] < 0) whole_[id] = out_.Add(gather_, {slices_[id]});
    return whole_[id];
  }

  const Graph& g_;
  const std::vector<TensorType>& types_;
  const Region& region_;
  const AllGather gather_;  // of what moves
  Graph out_;
  std::vector<NodeId> whole_, slices_;  // by old id, -1: not there
};

}  // namespace

absl::StatusOr<Graph> ApplyReorder(const TypedGraph& program, const Reorder& reorder) {
  const Graph& g = program.graph();
  if (As<AllGather>(g, reorder.all_gather) == nullptr)
    return Refused(reorder, "want all_gather, have ", NodeText(g, reorder.all_gather));
  const Region region(program, reorder.all_gather);
  if (region.empty()) {
    return Refused(reorder, "no computation after ", NodeText(g, reorder.all_gather),
                   " can be done on slices (",
                   Text(program.type(program.inputs(reorder.all_gather)[0])), ")");
  }
  ASSIGN_OR_RETURN(const Graph moved,
                   TakeSlicesAtHand(Mover(program, region, reorder.all_gather).Run()));
  return TotalBeforeRanks(moved);
}

}  // namespace coconet
