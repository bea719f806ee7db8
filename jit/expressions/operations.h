#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/expressions/kernel_context.h"

namespace coconet {

/// The operands whose elements at its own place an operation is computed from, in this order. A
/// view loads operands in memory; operands that the kernel computes are at the view's own place.
std::vector<NodeId> ElementOperands(const KernelContext& k, NodeId id);

/// The expression for `lanes` elements of an operation from `index` on: `operands` are the names of
/// its ElementOperands there. Internal for an operation that computes no elements.
absl::StatusOr<std::string> OperationText(KernelContext& k, NodeId id,
                                          const std::vector<std::string>& operands,
                                          absl::string_view lanes, absl::string_view index);

/// A u8 is computed in a wider type, and wraps all the same.
std::string InRange(DType dtype, std::string expression);

}  // namespace coconet
