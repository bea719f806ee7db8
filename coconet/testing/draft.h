#pragma once

#include <vector>

#include "coconet/ir/graph.h"

namespace coconet {

/// A node of a draft, and a bound on the magnitude of its elements. Absent if an operation did not
/// fit its operands; then all that is computed from it is absent, too.
struct Drafted {
  NodeId id = -1;
  double bound = 0;
  bool there() const { return id >= 0; }
};

/// A program in the making, whose values stay small. A node is added only if it infers.
class ProgramDraft {
 public:
  explicit ProgramDraft(std::string name) { graph_.name = std::move(name); }

  const Graph& graph() const { return graph_; }
  const TensorType& type(Drafted v) const { return types_[v.id]; }
  NodeId size() const { return graph_.size(); }

  /// Absent when an operand is, the node does not infer, or the bound is beyond the dtype.
  Drafted Add(Op op, const std::vector<Drafted>& operands, double bound);
  /// Drops the youngest node. Requires that nothing uses it.
  void Pop();

  /// An input within [-1, 1], integers within [-9, 9]; one for each call.
  Drafted NewInput(DType dtype, Shape shape, Layout layout);
  Drafted NewState(DType dtype, Shape shape, Layout layout);

  Drafted Number(double value, DType dtype);
  Drafted Cast(DType dtype, Drafted a);
  /// a + number, a * number: of a's dtype.
  Drafted Plus(Drafted a, double number);
  Drafted Times(Drafted a, double number);
  Drafted Apply(Pw fn, const std::vector<Drafted>& operands, double bound);

  /// Folds rows or the whole tensor over all ranks: with an AllReduce if each rank folds its part.
  Drafted Whole(FoldKind kind, Drafted a, std::vector<int> dims);
  Drafted Norm(Drafted a);
  Drafted ArgMax(DType dtype, Drafted a, int dim);
  Drafted Softmax(Drafted a);
  Drafted LayerNorm(Drafted a);
  Drafted RmsNorm(Drafted a);
  /// The number of elements that one result is folded from.
  int64_t Folded(Drafted a, const std::vector<int>& dims) const;

 private:
  std::vector<int> LastDim(Drafted a) const;

  Graph graph_;
  std::vector<TensorType> types_;
  int inputs_ = 0, states_ = 0;
};

}  // namespace coconet
