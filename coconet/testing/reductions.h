#pragma once

#include <algorithm>
#include <cmath>

#include "coconet/ir/op_table.h"

namespace coconet {

/// The rank of its stage that holds an element of a sliced tensor.
inline int OwnerOf(int64_t index, const TensorType& type, int ranks) {
  const TensorSlicing slicing = SlicingOf(type, ranks);
  const int64_t along = index / slicing.inner % std::max<int64_t>(slicing.slicing.extent, 1);
  return slicing.slicing.per == 0 ? 0 : slicing.slicing.OwnerOf(along);
}

/// The ranks that a collective spans: first, first + stride, ...
struct RankGroup {
  int first, stride, count;
};
/// The group of `rank`, in stages of `ranks` ranks, `of_node` on each node.
inline RankGroup MembersOf(Span span, int rank, int ranks, int of_node) {
  const int stage = rank - rank % ranks;
  if (span == Span::kNode) return {rank - rank % of_node, 1, of_node};
  if (span == Span::kAcross) return {stage + rank % of_node, of_node, ranks / of_node};
  return {stage, 1, ranks};
}

/// Integers wrap around; a sum of floats is not rounded.
inline double Combined(ReduceKind kind, DType dtype, double a, double b) {
  if (kind == ReduceKind::kSum)
    return IsInteger(dtype) ? Wrapped(dtype, absl::int128(a + b)).real() : a + b;
  if (std::isnan(b)) return b;  // std::max and std::min keep a
  return kind == ReduceKind::kMax ? std::max(a, b) : std::min(a, b);
}

/// The fold of no elements; for integers the least or the greatest number.
inline double FirstOf(FoldKind kind, DType dtype) {
  if (AcrossRanks(kind) == ReduceKind::kSum) return 0;
  return (kind == FoldKind::kMax ? Least(dtype) : Greatest(dtype)).real();
}

}  // namespace coconet
