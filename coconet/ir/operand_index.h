#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "coconet/ir/op_table.h"
#include "coconet/ir/typed_graph.h"

namespace coconet {

/// Whether a view's elements lie in other places than in its operand, whose shape is `operand`.
bool MovesElements(const Op& op, const Shape& result, const Shape& operand);

/// The map by which an operation reads an operand of shape `to` for a result of shape `from`; both
/// are bound. Elementwise operations broadcast; a reshape is the identity. Requires that each
/// element of the result comes from one of the operand: no folds or products.
IndexMap OperandMap(const Op& op, const Shape& from, const Shape& to);

/// OperandMap for a list of elements.
std::vector<int64_t> OperandIndices(const Op& op, const Shape& from, const Shape& to,
                                    absl::Span<const int64_t> list);

/// Where an operand of a Concat lies in the result: [begin, end) of each row, which has `row`
/// elements. A row is made of the joined dimension and those behind it.
struct JoinedRange {
  int64_t row = 0, begin = 0, end = 0;
  /// Whether the operand has element `index` of the result.
  bool Has(int64_t index) const { return index % row >= begin && index % row < end; }
  int64_t Of(int64_t index) const { return index / row * (end - begin) + index % row - begin; }
};
/// By operand. All shapes are bound.
std::vector<JoinedRange> JoinedRanges(const Concat& op, absl::Span<const Shape> operands);

/// The matrix of an operand that matrix `index` of a matrix product takes: leading dimensions
/// broadcast. Both shapes are bound.
int64_t MatrixOf(const Shape& product, const Shape& operand, int64_t index);

/// Dimensions [begin, end).
struct DimRange {
  size_t begin = 0, end = 0;
};
/// The leading dimensions of a matrix product along which an operand has a matrix for each index;
/// along the others it is broadcast. Nothing if one of the others is between them. `product` and
/// `operand`: the extents of their leading dimensions; those of 1 do not count.
std::optional<DimRange> OwnMatrixDims(absl::Span<const int64_t> product,
                                      absl::Span<const int64_t> operand);

// ---- The scales of a matrix product's operands (MatMul): all elements of a block have one

/// Whether the node is a matrix product of operands with scales.
bool IsScaledProduct(const Graph& g, NodeId id);

/// Whether each row of an operand's matrices has scales of its own, or all of them share theirs:
/// rows of several matrices, one behind the other, then have scales as those of one matrix.
bool ScalesFollowRows(const Shape& operand, const Shape& scales);

/// By dimension: the extent of the blocks of an operand that has scales of this shape, at least 1.
/// Both shapes are bound.
std::vector<int64_t> BlocksOf(const Shape& operand, const Shape& scales);

/// The matrix of scales of an operand's matrix `index`. Both shapes are bound.
int64_t ScalesOfMatrix(const Shape& operand, const Shape& scales, int64_t index);

/// Whether slices of a scaled product's operands, of these types, end where blocks do on any number
/// of ranks: where slices have scales of their own, each index has one.
bool AlwaysCutsAtBlocks(absl::Span<const TensorType> operands);

/// InvalidArgument if, on `ranks` ranks of a pipeline stage, slices of an operand of a scaled
/// product end within a block, so that two ranks would need its scale. `g` is bound.
absl::Status CheckScaleSlices(const Graph& g, int ranks);

}  // namespace coconet
