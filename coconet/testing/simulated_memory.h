#pragma once

#include <cstdint>
#include <vector>

#include "coconet/ir/typed_graph.h"
#include "coconet/reference/interpreter.h"

namespace coconet {

/// Memory of the ranks of some stages, with a place for every element of every node. Inputs and
/// states hold what each rank has; all the rest is NaN.
class SimulatedMemory {
 public:
  SimulatedMemory(const TypedGraph& program, int ranks, int nodes, int stages,
                  const ElementSource& source);

  int world() const { return static_cast<int>(elements_.size()); }
  int FirstOfStage(int rank) const { return rank - rank % ranks_; }
  /// Whether an element is in the rank's slice (or the slices of its place), or the tensor not
  /// sliced.
  bool Owns(int rank, int64_t index, const TensorType& type) const;

  Number& At(int rank, NodeId node, int64_t index);
  /// All elements as the rank has them; if `type` is sliced, put together from the ranks of its
  /// stage.
  std::vector<Number> Whole(int rank, NodeId node, const TensorType& type) const;

 private:
  const int ranks_, of_node_;
  std::vector<std::vector<std::vector<Number>>> elements_;  // by rank of the world, node, element
};

}  // namespace coconet
