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

/// An element of an integer type; 0 of memory that nothing was stored in.
inline int64_t IntegerOf(const Number& element) {
  return element.is_integer() ? element.word() : 0;
}

/// `value` as an element of `dtype`, if a float not rounded.
inline Number Whole(DType dtype, int64_t value) {
  return IsFloat(dtype) ? Number(static_cast<double>(value)) : Number(value);
}

/// Integers wrap around; a sum of floats is not rounded. NaN if an operand is, as memory is that
/// nothing was stored in.
inline Number Combined(ReduceKind kind, DType dtype, const Number& a, const Number& b) {
  if (a.is_nan() || b.is_nan()) return a.is_nan() ? a : b;
  if (IsFloat(dtype)) {
    const double x = a.real(), y = b.real();
    if (kind == ReduceKind::kSum) return x + y;
    return kind == ReduceKind::kMax ? std::max(x, y) : std::min(x, y);
  }
  const absl::int128 x = a.integer(), y = b.integer();
  if (kind == ReduceKind::kSum) return Wrapped(dtype, x + y);
  return Number::Of(kind == ReduceKind::kMax ? std::max(x, y) : std::min(x, y));
}

/// The fold of no elements; for integers the least or the greatest number.
inline Number FirstOf(FoldKind kind, DType dtype) {
  if (AcrossRanks(kind) == ReduceKind::kSum) return Whole(dtype, 0);
  return kind == FoldKind::kMax ? Least(dtype) : Greatest(dtype);
}

}  // namespace coconet
