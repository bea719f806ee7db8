#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "coconet/schedule/rewrites.h"

namespace coconet {
namespace {

/// Writes values anew on slices along one dim, or of one owner, next to the graph that is being
/// rebuilt.
class Sharder {
 public:
  Sharder(const TypedGraph& program, Cut to)
      : g_(program.graph()), types_(program.types()), to_(std::move(to)) {}

  /// `id` on slices, from the slices of the same shape that it is computed from; -1 for none. Its
  /// operands are in `out` as `renamed`. One operand on slices is enough: the others are then used
  /// on slices.
  NodeId Of(Graph& out, const std::vector<NodeId>& renamed, NodeId id, const Shape& shape) {
    std::vector<NodeId> stack = {id};
    while (!stack.empty()) {
      const NodeId next = stack.back();
      const absl::Span<const NodeId> operands = OperandsOnSlices(next);
      const auto unknown = absl::c_find_if(
          operands, [&](NodeId operand) { return !Known(operand, shape).has_value(); });
      if (!Known(next, shape).has_value()) {
        if (unknown != operands.end()) {
          stack.push_back(*unknown);
          continue;
        }
        known_[next] = FromOperands(out, renamed, next, shape);
      }
      stack.pop_back();
    }
    return *Known(id, shape);
  }

 private:
  /// -1: it is not on slices.
  std::optional<NodeId> Known(NodeId id, const Shape& shape) const {
    if (types_[id].shape != shape) return -1;  // broadcasts into the slices
    const auto at = known_.find(id);
    return at == known_.end() ? std::nullopt : std::optional<NodeId>(at->second);
  }

  /// Operands whose slices decide whether `id` is on slices.
  absl::Span<const NodeId> OperandsOnSlices(NodeId id) const {
    const Op& op = g_.nodes[id].op;
    if (As<Update>(g_, id) || IsElementwise(op)) return ValueOperands(g_, id);
    return {};
  }

  NodeId FromOperands(Graph& out, const std::vector<NodeId>& renamed, NodeId id,
                      const Shape& shape) const {
    const auto& inputs = g_.nodes[id].inputs;
    if (As<Update>(g_, id)) return *Known(inputs[1], shape);
    if (As<AllGather>(g_, id)) {
      const bool alike = types_[inputs[0]].layout == SlicesOf(shape);
      return alike ? renamed[inputs[0]] : -1;
    }
    if (!IsElementwise(g_.nodes[id].op)) return -1;
    std::vector<NodeId> operands;
    bool has_slices = false;
    for (NodeId input : inputs) {
      const NodeId sliced = *Known(input, shape);
      operands.push_back(sliced >= 0 ? sliced : renamed[input]);
      has_slices |= sliced >= 0;
    }
    return has_slices ? out.Add(g_.nodes[id].op, std::move(operands)) : -1;
  }

  Layout SlicesOf(const Shape& shape) const {
    return to_.dim == Layout::kFlat && shape.size() == 1 ? Layout::Sliced(0) : Layout::Sliced(to_);
  }

  const Graph& g_;
  const std::vector<TensorType>& types_;
  const Cut to_;
  std::map<NodeId, NodeId> known_;
};

}  // namespace

NodeId FoldOverRanks(Graph& out, const Fold& fold, NodeId part, DType dtype) {
  const ReduceKind across = AcrossRanks(fold.kind);
  const bool widens = across == ReduceKind::kSum && IsNarrowFloat(dtype);
  if (widens) part = out.Add(Cast{DType::kF32}, {part});
  const NodeId whole = out.Add(AllReduce{across}, {out.Add(fold, {part})});
  return widens ? out.Add(Cast{dtype}, {whole}) : whole;
}

absl::StatusOr<Graph> TakeSlicesAtHand(Graph graph) {
  ASSIGN_OR_RETURN(const TypedGraph program, TypedGraph::Of(std::move(graph)));
  const Graph& g = program.graph();
  std::map<std::string, Sharder> sharders;  // by where the slices go
  std::vector<NodeId> renamed;
  Graph out{g.name, {}, g.lists};
  for (NodeId id = 0; id < g.size(); ++id) {
    const NodeId operand = g.nodes[id].inputs.empty() ? -1 : g.nodes[id].inputs[0];
    if (const auto* shard = As<Shard>(g, id)) {
      Sharder& sharder = sharders.try_emplace(Text(shard->to), program, shard->to).first->second;
      renamed.push_back(sharder.Of(out, renamed, operand, program.type(operand).shape));
      if (renamed.back() >= 0) continue;
      renamed.pop_back();
    }
    std::vector<NodeId> inputs;
    for (NodeId input : g.nodes[id].inputs) inputs.push_back(renamed[input]);
    renamed.push_back(out.Add(g.nodes[id].op, std::move(inputs)));
  }
  RETURN_IF_ERROR(TypedGraph::Of(out).status());
  return out;
}

}  // namespace coconet
