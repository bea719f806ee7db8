#ifndef COCONET_JIT_BROADCAST_H_
#define COCONET_JIT_BROADCAST_H_

#include <cstdint>
#include <vector>

#include "coconet/types.h"

namespace coconet {

/// How an operand of a smaller shape is read over an iteration space: BroadcastMap of the kernel dialect.
/// Neighbouring dimensions that act as one are merged.
struct StoredMap {
  std::vector<int64_t> dims, strides;  // of the iteration space, innermost last
  bool identity = false;               // element i of the space is element i of the operand
  int64_t elements_a_rank = 0;         // sliced operand: its storage starts at rank * this
};

/// `shape` broadcasts to `space` as in NumPy; both bound.
StoredMap StoredMapOf(const TensorType& operand, const Shape& space, int ranks);

}  // namespace coconet

#endif  // COCONET_JIT_BROADCAST_H_
