#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "coconet/reference/bounded.h"
#include "coconet/reference/interpreter.h"
#include "coconet/reference/pointwise_runs.h"

namespace coconet {

/// What the interpreter evaluates: a program in a world.
struct Evaluated {
  const TypedGraph& program;
  int ranks;  // of a pipeline stage
  int nodes;  // of a pipeline stage
  int stages;
  const ElementSource& source;
  Numerics numerics = {};

  const TensorType& type(NodeId id) const { return program.type(id); }
  NodeId input(NodeId id, size_t i) const { return program.graph().nodes[id].inputs[i]; }
  int FirstOfStage(int rank) const { return rank - rank % ranks; }
  /// The rank that has element `at` of a node on slices, among those of the stage of `rank`.
  int OwnerOf(NodeId id, int64_t at, int rank) const;
  /// Whether a node on slices takes a local operand: each rank's own values for its part.
  bool TakesOwnValues(NodeId id, size_t operand) const {
    return type(id).layout.sliced() && type(input(id, operand)).layout == Layout::Local();
  }
  /// The rank's own part of dimension `dim` of the node's elements; all of it if the node is not
  /// sliced over it.
  Range PartOfDim(NodeId id, int dim, int rank) const;
};

/// Costly values that are asked for again and again, by node and rank: elements that others wait
/// for, such as results of folds, and rows and columns of matrix products' operands.
struct EvaluationCache {
  std::map<std::pair<NodeId, int>, std::unordered_map<int64_t, BoundedValue>> elements;
  std::map<std::pair<NodeId, int>, Bounded> scalars;  // computed ones
  struct Lines {
    std::unordered_map<int64_t, BoundedLine> rows, columns;
  };
  std::map<std::pair<NodeId, int>, Lines> lines;
  int64_t line_elements = 0;                             // of all lines
  std::vector<bool> whole_nodes = {};                    // WholeNodes; empty: none
  std::map<std::pair<NodeId, int>, Bounded> whole = {};  // their elements, row major
  std::map<NodeId, PointwiseRun> runs = {};              // RunsOf; empty: none
  std::function<bool()> stop = nullptr;                  // asked before each block

  /// Drops the lines of inputs and states, which are quick to read again, and computed lines if too
  /// many are left.
  void DropLines(const Graph& g);
};

/// Work on elements of one node, block by block. When no block is left, its results are in the
/// cache.
class EvaluationJob {
 public:
  /// `is_whole`: it fills EvaluationCache::whole for its node.
  EvaluationJob(NodeId node, int rank, bool is_whole = false)
      : node_(node), rank_(rank), is_whole_(is_whole) {}
  virtual ~EvaluationJob() = default;

  NodeId node() const { return node_; }
  int rank() const { return rank_; }
  bool is_whole() const { return is_whole_; }
  /// The elements that are needed now; empty if there are none, or none yet.
  const std::vector<int64_t>& block() const { return block_; }
  /// Fills the next block; false: nothing is left to do. Requires an empty block.
  virtual bool Next() = 0;
  /// Takes the values of the block, and empties it.
  void Take(const Bounded& values) {
    Use(values);
    block_.clear();
  }

 protected:
  virtual void Use(const Bounded& values) = 0;
  std::vector<int64_t> block_;

 private:
  const NodeId node_;
  const int rank_;
  const bool is_whole_;
};
using EvaluationJobs = std::vector<std::unique_ptr<EvaluationJob>>;

/// Folds elements to the results `outputs` of fold `id` that the cache lacks.
std::unique_ptr<EvaluationJob> NewFoldJob(const Evaluated& e, EvaluationCache& cache, NodeId id,
                                          int rank, std::vector<int64_t> outputs);

/// A row or column of operand `which` of a product, as far as `rank` sums over it; of scales, those
/// of that row or column of their operand.
struct ProductLine {
  NodeId operand;
  int rank;      // that is asked
  int owner;     // the rank under which it is kept
  bool is_row;   // in memory
  int64_t line;  // counted over all matrices

  /// Where the cache keeps it.
  std::unordered_map<int64_t, BoundedLine>& In(EvaluationCache& cache) const;
};
/// The line of operand `which` that element `index` of product `id` needs.
ProductLine LineOf(const Evaluated& e, NodeId id, int which, int rank, int64_t index);
std::unique_ptr<EvaluationJob> NewLineJob(const Evaluated& e, EvaluationCache& cache,
                                          const ProductLine& line);

/// The values of one block of elements of one result and of all that it needs: each node once for
/// every list of elements that is asked of it and, if it is Local, every rank. Used once.
class Evaluation {
 public:
  /// Evaluates the block of a job.
  Evaluation(const Evaluated& e, EvaluationCache& cache, const EvaluationJob& job);

  /// Jobs that must run before the values can be computed: they fill what the cache lacks.
  EvaluationJobs& missing() { return missing_; }
  /// Requires that nothing is missing.
  const Bounded& Compute();

 private:
  /// Some elements of a node: an entry of lists_, and the rank; if the ranks of a pipeline stage,
  /// or of a node of it, share the value, their first rank.
  using Part = std::pair<int, int>;

  const TensorType& type(NodeId id) const { return e_.program.type(id); }
  int FirstOfStage(int rank) const { return e_.FirstOfStage(rank); }
  Part PartOf(NodeId id, int list, int rank) const;
  /// The ranks whose operands a reduction combines on this rank.
  std::vector<int> Contributors(const Op& op, int rank) const;
  void Want(NodeId id, int list, int rank) { values_[id].try_emplace(PartOf(id, list, rank)); }
  const Bounded& Get(NodeId id, int list, int rank) const {
    return values_.at(id).at(PartOf(id, list, rank));
  }
  /// Whether a comparison's second operand is the greatest or least of elements of its first.
  bool IsOfOwnExtreme(NodeId id) const;
  /// Whether the node is a computed scalar, which is kept after the first time.
  bool IsKept(NodeId id) const {
    return type(id).shape.empty() && IsComputation(e_.program.graph().nodes[id].op);
  }

  /// Whether all elements of the node are kept; of the node that a job computes to keep them, not.
  bool IsWhole(NodeId id) const {
    return !cache_.whole_nodes.empty() && cache_.whole_nodes[id] &&
           !(fills_whole_ && id == result_);
  }
  /// The run of which the node is the last step; null: none.
  const PointwiseRun* RunTo(NodeId id) const {
    const auto run = cache_.runs.find(id);
    return run == cache_.runs.end() ? nullptr : &run->second;
  }
  Bounded ComputeRun(const PointwiseRun& run, const Part& part);
  /// The nodes whose values the node's follow from.
  std::vector<NodeId> OperandsOf(NodeId id) const;
  /// Wants what the values of the part follow from.
  void WantFor(NodeId id, const Part& part);

  /// The elements of a list by the rank that has them: their places in the list.
  std::map<int, std::vector<size_t>> PlacesByOwner(NodeId id, const Part& part) const;
  /// The elements of operand `i` that the elements of `list` at these places need.
  int MapPlaces(NodeId id, int list, const std::vector<size_t>& places, size_t i);
  void WantOwnValues(NodeId id, const Part& part, size_t i);
  Bounded OwnValues(NodeId id, const Part& part, size_t i);
  /// The rule of every operation: then(want, compute), two functions, of which one wants the values
  /// that the part needs, and the other computes it from them.
  template <class Then>
  auto ByRule(NodeId id, const Part& part, const Then& then);
  void WantOperands(NodeId id, const Part& part);
  Bounded Compute(NodeId id, const Part& part);
  void WantArguments(NodeId id, const Part& part);
  Bounded Applied(NodeId id, const Part& part);
  Bounded Indices(const Iota& op, NodeId id, const Part& part) const;
  /// Forgets the values that only `user` needed, and those that only they needed.
  void Release(NodeId user);
  Bounded Kept(NodeId id, const Part& part);
  Bounded AcrossRanks(ReduceKind kind, NodeId reduction, const Part& part) const;
  /// The random word of each element of an operation whose second operand is a seed.
  std::vector<uint32_t> WordsOf(NodeId id, const Part& part, int64_t stream);
  Bounded Dropped(NodeId id, const Part& part);
  Bounded Read(const std::string& name, DType dtype, const Part& part) const;
  /// The elements of one operand of a Concat that one rank is asked for.
  struct JoinedElements {
    std::vector<int64_t> elements;
    std::vector<size_t> places;  // in the result
  };
  using JoinedParts = std::map<std::pair<size_t, int>, JoinedElements>;
  JoinedParts JoinedPartsOf(NodeId id, const Part& part) const;
  void WantJoined(NodeId id, const Part& part);
  Bounded Joined(NodeId id, const Part& part);
  /// The rank whose table has element `at` of a look-up on `rank`: the element's owner if the
  /// result is sliced and the table local.
  int TableRankOf(NodeId id, int64_t at, int rank) const;
  /// Asks for the rows that a Gather takes, and before them for the indices.
  void WantTaken(NodeId id, const Part& part);
  Bounded Taken(NodeId id, const Part& part);
  /// Asks for the rows of an EmbeddingBag's bags, and before them for what says which rows these
  /// are.
  void WantPooled(NodeId id, const Part& part);
  Bounded Pooled(NodeId id, const Part& part);
  /// The updates of the rows of a ScatterAdd, and the indices, which are needed before them.
  struct Updates {
    std::vector<int64_t> elements, indices;  // of these operands
    std::vector<size_t> places;              // in the result
    bool certain = true;                     // whether the indices are
  };
  Updates UpdatesOf(NodeId id, const Part& part);
  void WantAdded(NodeId id, const Part& part);
  Bounded Added(NodeId id, const Part& part);
  /// Adds a missing job for the elements of operand `i` that the cache lacks; false if it lacks
  /// any.
  bool HasElements(NodeId id, size_t i, int list, int rank, const std::vector<int64_t>& elements);
  void NeedFolds(NodeId id, const Part& part);
  Bounded Folded(NodeId id, const Part& part) const;
  /// A line that the cache has, or that follows from values that it has; null: neither.
  const BoundedLine* FindLine(const ProductLine& line);
  void NeedLines(NodeId id, const Part& part);
  Bounded Product(NodeId id, const Part& part) const;

  /// The list of operand `i`'s elements that those of `list` need.
  int MapList(NodeId id, int list, size_t i);
  int Listed(std::vector<int64_t> list);

  const Evaluated& e_;
  EvaluationCache& cache_;
  const NodeId result_;
  const int rank_;
  const bool fills_whole_;
  std::map<std::vector<int64_t>, int> list_numbers_;
  std::vector<const std::vector<int64_t>*> lists_;    // by number; 0: what was asked for
  std::map<NodeId, std::map<Part, Bounded>> values_;  // of what is wanted
  std::map<NodeId, NodeId> last_user_;                // of these
  EvaluationJobs missing_;
};

/// Values of a block of elements. There is no recursion: the results of folds and products that are
/// needed first are jobs on a stack. None if the cache's `stop` ended it.
std::optional<Bounded> EvaluateBlock(const Evaluated& e, EvaluationCache& cache, NodeId result,
                                     int rank, absl::Span<const int64_t> indices);

}  // namespace coconet
