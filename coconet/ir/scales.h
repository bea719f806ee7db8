#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "coconet/ir/typed_graph.h"

namespace coconet {

// The scales of a matrix product's operands (MatMul): all elements of a block have one.

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
