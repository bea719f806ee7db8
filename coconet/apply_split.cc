#include "coconet/base/status.h"
#include "coconet/infer.h"
#include "coconet/rewrites.h"

namespace coconet {

absl::StatusOr<Graph> ApplySplit(const Graph& g, const Split& split) {
  const auto* all_reduce = As<AllReduce>(g, split.all_reduce);
  if (all_reduce == nullptr) return Refused(split, "want all_reduce, have ", NodeText(g, split.all_reduce));
  ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferTypes(g));
  const Shape& shape = types[split.all_reduce].shape;
  const int rank = static_cast<int>(shape.size());
  if (rank == 0) {
    return Refused(split, NodeText(g, split.all_reduce), " is a scalar: there is nothing to scatter");
  }
  if (split.dim != Layout::kFlat && (split.dim < 0 || split.dim >= rank)) {
    return Refused(split, "want flat or a dimension from 0 to ", rank - 1, " of ", Text(shape), ", have ", split.dim);
  }
  return Rewrite(g,
                 [&](Graph& out, NodeId id, std::vector<NodeId> inputs) {
                   if (id != split.all_reduce) return out.Add(g.nodes[id].op, std::move(inputs));
                   const NodeId scattered = out.Add(ReduceScatter{all_reduce->kind, split.dim}, std::move(inputs));
                   return out.Add(AllGather{}, {scattered});
                 })
      .graph;
}

}  // namespace coconet
