#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "coconet/ir/op_table.h"

namespace coconet {

/// A view whose elements lie in other places than in its operand, of shape `operand`; `result` is
/// its own.
bool MovesElements(const Op& op, const Shape& result, const Shape& operand);

/// The map by which an operation reads an operand of shape `to` for a result of shape `from`; both
/// bound. Elementwise ones broadcast; a reshape is the identity. Requires that elements of the
/// result come from single ones of the operand, which is so of neither folds nor products.
IndexMap OperandMap(const Op& op, const Shape& from, const Shape& to);

/// OperandMap for a list of elements.
std::vector<int64_t> OperandIndices(const Op& op, const Shape& from, const Shape& to,
                                    absl::Span<const int64_t> list);

/// An operand of a Concat as its elements lie in the result: of each row of the result, which has
/// `row` elements, [begin, end). Rows are of the joined dimension and those behind it.
struct JoinedRange {
  int64_t row = 0, begin = 0, end = 0;
  /// Whether it has element `index` of the result, and which one that is there.
  bool Has(int64_t index) const { return index % row >= begin && index % row < end; }
  int64_t Of(int64_t index) const { return index / row * (end - begin) + index % row - begin; }
};
/// By operand. All shapes are bound.
std::vector<JoinedRange> JoinedRanges(const Concat& op, absl::Span<const Shape> operands);

/// The matrix of an operand that matrix `index` of a matrix product takes: leading dimensions
/// broadcast. Both shapes are bound.
int64_t MatrixOf(const Shape& product, const Shape& operand, int64_t index);

}  // namespace coconet
