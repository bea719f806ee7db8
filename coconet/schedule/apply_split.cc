#include <utility>
#include <vector>

#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/schedule/rewrites.h"

namespace coconet {
namespace {

absl::Status CheckDim(const Graph& g, const Split& split, const Shape& shape) {
  const int rank = static_cast<int>(shape.size());
  if (rank == 0)
    return Refused(split, NodeText(g, split.node), " is a scalar: there is nothing to scatter");
  if (split.dim == Layout::kFlat || (split.dim >= 0 && split.dim < rank)) return absl::OkStatus();
  return Refused(split, "want flat or a dimension from 0 to ", rank - 1, " of ", Text(shape),
                 ", have ", split.dim);
}

bool IsReplicated(const TensorType& type) {
  return type.layout.kind == Layout::Kind::kReplicated || type.layout.kind == Layout::Kind::kAuto;
}

/// A slice takes part in an elementwise operation only where it is not broadcast flat.
absl::StatusOr<Graph> Checked(const Split& split, absl::StatusOr<Graph> graph) {
  if (!graph.ok()) return Refused(split, "slices do not fit: ", graph.status().message());
  return TotalBeforeRanks(*graph);
}

absl::Status CheckDim(const Graph& g, const SplitByNode& split, const TensorType& operand,
                      const TensorType& result) {
  const Layout& slices = As<AllGather>(g, split.node) ? operand.layout : result.layout;
  if (slices.owned())
    return Refused(split, NodeText(g, split.node),
                   " is of a tensor that one rank owns, want slices");
  const int rank = static_cast<int>(operand.shape.size());
  if (rank == 0)
    return Refused(split, NodeText(g, split.node), " is a scalar: there is nothing to scatter");
  if (split.dim != Layout::kFlat && (split.dim < 0 || split.dim >= rank)) {
    return Refused(split, "want flat or a dimension from 0 to ", rank - 1, " of ",
                   Text(operand.shape), ", have ", split.dim);
  }
  if (slices.weighted())
    return Refused(split, NodeText(g, split.node), " gathers parts by weight, want equal ones");
  if (As<AllReduce>(g, split.node) || slices.dim == split.dim) return absl::OkStatus();
  return Refused(split, NodeText(g, split.node), " has slices over ", DimText(slices.dim),
                 ", want that, have ", DimText(split.dim));
}

/// Appends the steps that replace a collective over all ranks.
NodeId AddSteps(Graph& out, const Op& op, int dim, NodeId operand) {
  if (const auto* scatter = std::get_if<ReduceScatter>(&op)) {
    const NodeId of_node = out.Add(ReduceScatter{scatter->kind, dim, Span::kNode}, {operand});
    return out.Add(ReduceScatter{scatter->kind, dim, Span::kAcross}, {of_node});
  }
  if (std::holds_alternative<AllGather>(op))
    return out.Add(AllGather{Span::kNode}, {out.Add(AllGather{Span::kAcross}, {operand})});
  const ReduceKind kind = std::get<AllReduce>(op).kind;
  const NodeId of_node = out.Add(ReduceScatter{kind, dim, Span::kNode}, {operand});
  return out.Add(AllGather{Span::kNode}, {out.Add(AllReduce{kind, Span::kAcross}, {of_node})});
}

}  // namespace

absl::StatusOr<Graph> ApplySplit(const TypedGraph& program, const Split& split) {
  const Graph& g = program.graph();
  const Op& op = g.nodes[split.node].op;
  const auto* all_reduce = SpanOf(op) == Span::kAll ? std::get_if<AllReduce>(&op) : nullptr;
  const auto* fold = std::get_if<Fold>(&op);
  const bool is_send = std::holds_alternative<Send>(op);
  if (all_reduce == nullptr && fold == nullptr && !is_send)
    return Refused(split, "want all_reduce, a fold or send, have ", NodeText(g, split.node));
  const TensorType& operand = program.type(program.inputs(split.node)[0]);
  RETURN_IF_ERROR(CheckDim(g, split, operand.shape));
  if (all_reduce == nullptr && !IsReplicated(operand)) {
    return Refused(split, NodeText(g, split.node), " takes ", Text(operand),
                   ", want a replicated operand");
  }
  if (fold != nullptr && !program.type(split.node).shape.empty()) {
    return Refused(split, NodeText(g, split.node),
                   " has several results, want a fold of all dimensions");
  }
  Rewritten split_up = Rewrite(g, [&](Graph& out, NodeId id, std::vector<NodeId> inputs) {
    if (id != split.node) return out.Add(g.nodes[id].op, std::move(inputs));
    if (all_reduce != nullptr) {
      const NodeId scattered =
          out.Add(ReduceScatter{all_reduce->kind, split.dim}, std::move(inputs));
      return out.Add(AllGather{}, {scattered});
    }
    const NodeId part = out.Add(Shard{split.dim}, std::move(inputs));
    return is_send ? out.Add(AllGather{}, {out.Add(op, {part})})
                   : FoldOverRanks(out, *fold, part, operand.dtype);
  });
  return Checked(split, TakeSlicesAtHand(std::move(split_up.graph)));
}

absl::StatusOr<Graph> ApplySplitByNode(const TypedGraph& program, const SplitByNode& split) {
  const Graph& g = program.graph();
  const Op& op = g.nodes[split.node].op;
  const bool splits = std::holds_alternative<AllReduce>(op) ||
                      std::holds_alternative<ReduceScatter>(op) ||
                      std::holds_alternative<AllGather>(op);
  if (!splits || SpanOf(op) != Span::kAll) {
    return Refused(split, "want all_reduce, reduce_scatter or all_gather over all ranks, have ",
                   NodeText(g, split.node));
  }
  RETURN_IF_ERROR(
      CheckDim(g, split, program.type(program.inputs(split.node)[0]), program.type(split.node)));
  return Rewrite(g,
                 [&](Graph& out, NodeId id, std::vector<NodeId> inputs) {
                   return id == split.node ? AddSteps(out, op, split.dim, inputs[0])
                                           : out.Add(g.nodes[id].op, std::move(inputs));
                 })
      .graph;
}

}  // namespace coconet
