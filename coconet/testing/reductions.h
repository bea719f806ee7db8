#ifndef COCONET_TESTING_REDUCTIONS_H_
#define COCONET_TESTING_REDUCTIONS_H_

#include <algorithm>
#include <limits>

#include "coconet/op.h"

namespace coconet {

/// The rank of its stage that holds an element of a sliced tensor.
inline int OwnerOf(int64_t index, const TensorType& type, int ranks) {
  const TensorSlicing slicing = SlicingOf(type.shape, type.layout.dim, ranks);
  const int64_t along = index / slicing.inner % std::max<int64_t>(slicing.slicing.extent, 1);
  return static_cast<int>(along / std::max<int64_t>(slicing.slicing.per, 1));
}

inline double Combined(ReduceKind kind, double a, double b) {
  if (kind == ReduceKind::kSum) return a + b;
  return kind == ReduceKind::kMax ? std::max(a, b) : std::min(a, b);
}

/// What folding nothing gives.
inline double FirstOf(FoldKind kind) {
  if (AcrossRanks(kind) == ReduceKind::kSum) return 0;
  return kind == FoldKind::kMax ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

}  // namespace coconet

#endif  // COCONET_TESTING_REDUCTIONS_H_
