#include <map>
#include <optional>

#include "coconet/base/status.h"
#include "coconet/infer.h"
#include "coconet/rewrites.h"

namespace coconet {
namespace {

/// Writes values anew on slices, next to the graph that is being rebuilt.
class Sharder {
 public:
  Sharder(const Graph& g, const std::vector<TensorType>& types, int dim) : g_(g), types_(types), dim_(dim) {}

  /// The own part of `id`, whose operands are already in `out` as `renamed`: elementwise operations move to slices, with what they
  /// are computed from.
  NodeId Of(Graph& out, const std::vector<NodeId>& renamed, NodeId id, const Shape& shape) {
    if (types_[id].shape != shape) return renamed[id];  // broadcasts into the slices
    const auto [at, is_new] = known_.try_emplace(id);
    if (!is_new) return at->second;
    const Node& node = g_.nodes[id];
    NodeId result = -1;
    const bool is_elementwise = As<Pointwise>(g_, id) || As<Cast>(g_, id) || As<Dropout>(g_, id);
    if (is_elementwise) {
      std::vector<NodeId> inputs;
      for (NodeId input : node.inputs) inputs.push_back(Of(out, renamed, input, shape));
      result = out.Add(node.op, std::move(inputs));
    } else if (As<AllGather>(g_, id) && types_[node.inputs[0]].layout.dim == SlicedDim(shape)) {
      result = renamed[node.inputs[0]];
    } else {
      result = out.Add(Shard{dim_}, {renamed[id]});
    }
    return known_[id] = result;
  }

 private:
  int SlicedDim(const Shape& shape) const { return dim_ == Layout::kFlat && shape.size() == 1 ? 0 : dim_; }

  const Graph& g_;
  const std::vector<TensorType>& types_;
  const int dim_;
  std::map<NodeId, NodeId> known_;
};

absl::Status CheckDim(const Graph& g, const Split& split, const Shape& shape) {
  const int rank = static_cast<int>(shape.size());
  if (rank == 0) return Refused(split, NodeText(g, split.node), " is a scalar: there is nothing to scatter");
  if (split.dim == Layout::kFlat || (split.dim >= 0 && split.dim < rank)) return absl::OkStatus();
  return Refused(split, "want flat or a dimension from 0 to ", rank - 1, " of ", Text(shape), ", have ", split.dim);
}

bool IsReplicated(const TensorType& type) {
  return type.layout.kind == Layout::Kind::kReplicated || type.layout.kind == Layout::Kind::kAuto;
}

/// A slice takes part in an elementwise operation only where it is not broadcast flat.
absl::StatusOr<Graph> Checked(const Split& split, absl::StatusOr<Graph> graph) {
  RETURN_IF_ERROR(graph.status());
  const absl::Status types = InferTypes(*graph).status();
  if (!types.ok()) return Refused(split, "slices do not fit: ", types.message());
  return graph;
}

}  // namespace

absl::StatusOr<Graph> ApplySplit(const Graph& g, const Split& split) {
  const Op& op = g.nodes[split.node].op;
  const auto* all_reduce = std::get_if<AllReduce>(&op);
  const auto* fold = std::get_if<Fold>(&op);
  const bool is_send = std::holds_alternative<Send>(op);
  if (all_reduce == nullptr && fold == nullptr && !is_send) {
    return Refused(split, "want all_reduce, a fold or send, have ", NodeText(g, split.node));
  }
  ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferTypes(g));
  const TensorType& operand = types[g.nodes[split.node].inputs[0]];
  RETURN_IF_ERROR(CheckDim(g, split, operand.shape));
  if (all_reduce == nullptr && !IsReplicated(operand)) {
    return Refused(split, NodeText(g, split.node), " takes ", Text(operand), ", want a replicated operand");
  }
  if (fold != nullptr && !types[split.node].shape.empty()) {
    return Refused(split, NodeText(g, split.node), " has several results, want a fold of all dimensions");
  }
  Sharder sharder(g, types, split.dim);
  std::vector<NodeId> renamed;
  Graph out{g.name, {}};
  for (NodeId id = 0; id < g.size(); ++id) {
    std::vector<NodeId> inputs;
    for (NodeId input : g.nodes[id].inputs) inputs.push_back(renamed[input]);
    if (id != split.node) {
      renamed.push_back(out.Add(g.nodes[id].op, std::move(inputs)));
    } else if (all_reduce != nullptr) {
      const NodeId scattered = out.Add(ReduceScatter{all_reduce->kind, split.dim}, std::move(inputs));
      renamed.push_back(out.Add(AllGather{}, {scattered}));
    } else {
      const NodeId part = out.Add(op, {sharder.Of(out, renamed, g.nodes[id].inputs[0], operand.shape)});
      renamed.push_back(is_send ? out.Add(AllGather{}, {part}) : out.Add(AllReduce{AcrossRanks(fold->kind)}, {part}));
    }
  }
  return Checked(split, std::move(out));
}

}  // namespace coconet
