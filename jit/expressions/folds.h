#pragma once

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "jit/expressions/kernel_context.h"

namespace coconet {

/// "SumOf", "MaxOf", "MinOf" of the dialect.
absl::string_view FoldKindText(FoldKind kind);
/// The type of partial results of folds in a dtype, which blocks and ranks leave for each other:
/// the dialect's Partial, 8 bytes.
DType PartialType(DType dtype);
/// The fold of no elements.
Number FirstOfFold(FoldKind kind, DType dtype);

/// An accumulator of fold `id`: its name and the statement that declares it.
std::pair<std::string, std::string> Accumulator(KernelContext& k, NodeId id);
/// "Averaged<f32>(x, p.count3)", from a total of that fold: the value in the compute type.
std::string FromTotal(KernelContext& k, NodeId id, absl::string_view total);

/// A reduction over the tensors of the kernel's list: `statements` compute `result` of tensor `t`.
std::string TotalOf(KernelContext& k, ReduceKind kind, DType dtype, absl::string_view statements,
                    absl::string_view result);

}  // namespace coconet
