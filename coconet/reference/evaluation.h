#ifndef COCONET_REFERENCE_EVALUATION_H_
#define COCONET_REFERENCE_EVALUATION_H_

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "coconet/reference/bounded.h"
#include "coconet/reference/interpreter.h"

namespace coconet {

/// What the interpreter evaluates: a program in a world.
struct Evaluated {
  const TypedGraph& program;
  int ranks;  // of a stage
  int nodes;  // of a stage
  int stages;
  const ElementSource& source;
};

/// What is costly, and asked for again and again: results of folds, and rows and columns of matrix
/// products' operands. By node and rank.
struct EvaluationCache {
  std::map<std::pair<NodeId, int>, std::unordered_map<int64_t, BoundedValue>> folds;
  std::map<std::pair<NodeId, int>, Bounded> scalars;  // computed ones
  struct Lines {
    std::unordered_map<int64_t, BoundedLine> rows, columns;
  };
  std::map<std::pair<NodeId, int>, Lines> lines;
  int64_t line_elements = 0;  // of all lines
};

/// The values of one block of elements of one result and of all that it needs: each node once for
/// every list of elements that is asked of it and, where it is Local, every rank. Used once.
class Evaluation {
 public:
  Evaluation(const Evaluated& e, EvaluationCache& cache) : e_(e), cache_(cache) {}

  /// `rank` of the world.
  const Bounded& Of(NodeId result, int rank, absl::Span<const int64_t> indices);

 private:
  /// Some elements of a node: an entry of lists_, and the rank: of a value that the ranks of a
  /// stage (or of a node of it) share its first one.
  using Part = std::pair<int, int>;

  const TensorType& type(NodeId id) const { return e_.program.type(id); }
  int FirstOfStage(int rank) const { return rank - rank % e_.ranks; }
  Part PartOf(NodeId id, int list, int rank) const;
  /// Those whose operands a reduction gives this rank.
  std::vector<int> Contributors(const Op& op, int rank) const;
  void Want(NodeId id, int list, int rank) { values_[id].try_emplace(PartOf(id, list, rank)); }
  const Bounded& Get(NodeId id, int list, int rank) const {
    return values_.at(id).at(PartOf(id, list, rank));
  }
  /// A scalar that is computed, whatever from: known after the first time.
  bool IsKept(NodeId id) const {
    return type(id).shape.empty() && IsComputation(e_.program.graph().nodes[id].op);
  }

  void WantOperands(NodeId id, const Part& part);
  Bounded Compute(NodeId id, const Part& part);
  Bounded Kept(NodeId id, const Part& part);
  Bounded AcrossRanks(ReduceKind kind, NodeId reduction, const Part& part) const;
  /// What an operation that draws at random draws for each element; its second operand is the seed.
  std::vector<uint32_t> WordsOf(NodeId id, const Part& part, int64_t stream);
  Bounded Dropped(NodeId id, const Part& part);
  Bounded Received(NodeId id, const Part& part) const;
  Bounded Read(const std::string& name, const Part& part) const;
  Bounded Folded(NodeId id, const Part& part);
  void FoldOutputs(NodeId id, int rank, const std::vector<int64_t>& outputs);
  Bounded Product(NodeId id, const Part& part);
  /// Row or column `line` of operand `which` of the product, of the elements that `rank` sums over.
  const BoundedLine& LineOf(NodeId id, int which, int rank, int64_t line);

  /// The rank's own part of dimension `dim` of the node's elements; all where it is not sliced over
  /// it.
  Range PartOfDim(NodeId id, int dim, int rank) const;
  /// The list of the elements of operand `i` that those of `list` need.
  int MapList(NodeId id, int list, size_t i);
  int Listed(std::vector<int64_t> list);

  const Evaluated& e_;
  EvaluationCache& cache_;
  std::vector<std::vector<int64_t>> lists_;           // 0: what was asked for
  std::map<NodeId, std::map<Part, Bounded>> values_;  // of what is wanted
};

}  // namespace coconet

#endif  // COCONET_REFERENCE_EVALUATION_H_
