#pragma once

#include <cstdint>
#include <vector>

#include "coconet/ir/graph.h"

namespace coconet {

/// How a stored tensor is read over an iteration space: BroadcastMap of the kernel dialect.
/// Neighbouring dimensions that act as one are merged.
struct StoredMap {
  std::vector<int64_t> dims, strides;  // of the iteration space, innermost last
  int64_t offset = 0;                  // of element 0 of the space
  bool identity = false;               // element i of the space is element i of the operand
  /// Sliced operand: its storage starts at rank * elements_per_rank - shift, and not before 0.
  int64_t elements_per_rank = 0, shift = 0;
};

/// `operand.shape` broadcasts to `space` as in NumPy; both bound.
StoredMap StoredMapOf(const TensorType& operand, const Shape& space, int ranks);

/// How a view's operand, which is not sliced, is read over the view's result.
StoredMap ViewMapOf(const Op& view, const Shape& operand, const Shape& result);

}  // namespace coconet
