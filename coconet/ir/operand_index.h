#ifndef COCONET_IR_OPERAND_INDEX_H_
#define COCONET_IR_OPERAND_INDEX_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "coconet/ir/op.h"

namespace coconet {

/// A view: Transpose, Reshape, SubTensor. Its elements are the operand's, in other places.
bool IsView(const Op& op);
/// A view whose elements lie in other places than in its operand, of shape `operand`; `result` is
/// its own.
bool MovesElements(const Op& op, const Shape& result, const Shape& operand);

/// Where the elements of a result lie in an operand: extents of the result and the operand's stride
/// along each, from an offset.
struct IndexMap {
  std::vector<int64_t> extents, strides;  // of the result's dimensions
  int64_t offset = 0;
  int64_t Of(int64_t index) const;
};

/// The map by which an operation (elementwise: broadcasting; or a view) reads an operand of shape
/// `to` for a result of shape `from`; both bound. A reshape is the identity.
IndexMap OperandMap(const Op& op, const Shape& from, const Shape& to);

/// OperandMap for a list of elements.
std::vector<int64_t> OperandIndices(const Op& op, const Shape& from, const Shape& to,
                                    absl::Span<const int64_t> list);

}  // namespace coconet

#endif  // COCONET_IR_OPERAND_INDEX_H_
