#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/language/expression.h"

namespace coconet {

/// Recursive descent, one method per rule of the grammar (docs/language.md).
class Expression {
 public:
  using Result = absl::StatusOr<Tensor>;

  Expression(Words& words, const Values& values, Program& program)
      : words_(words), values_(values), program_(program) {}

  /// The rule `expression`.
  Result Whole();
  /// The rule `operand`.
  Result Operand();

 private:
  Result Primary();
  /// A value's ranges, by dimension; '[' is read.
  Result Ranges(Tensor value);
  Result Conjunction();
  Result Negation();
  Result Comparison();
  Result Sum();
  Result Product();
  Result Signed();
  Result Name(absl::string_view name);

  // The name and '(' of a call are read, ')' is not (expression_calls.cc).
  Result Call(absl::string_view name);
  Result OpCall(Op op);
  Result Indexed(Tensor (*make)(DType, Tensor, int));
  /// With counts, it stands for several operations.
  Result AllToAllCall();
  /// All arguments up to ')'; fails unless there are `count`.
  absl::StatusOr<std::vector<Tensor>> Operands(absl::string_view name, size_t count);
  /// The next `count` arguments.
  absl::StatusOr<std::vector<Tensor>> FirstOperands(size_t count);
  /// Whether an attribute of the operation, before which all operands must stand, follows the comma
  /// here: one of its flags, or else one word and ')'.
  bool LastArgumentFollows(const OpRow& row) const;
  /// The attributes behind the operands, each with its comma.
  absl::Status ArgumentsAfter(Op& op, const std::vector<Tensor>& operands);
  /// Reads one attribute; for kDims one dimension, by number or by the name of its extent.
  absl::Status Argument(const Attribute& a, Op& op, const std::vector<Tensor>& operands);
  /// Reads a number with its sign, or "inf".
  absl::StatusOr<Number> SignedNumber(absl::string_view what);
  /// The number token here; InvalidArgument for an integer that neither 64 bits nor a double hold.
  absl::StatusOr<Number> Literal();
  absl::StatusOr<int> Int(absl::string_view what);
  absl::StatusOr<int> NamedDim(const Tensor& operand);

  Words& words_;
  const Values& values_;
  Program& program_;
  int nesting_ = 0;
};

}  // namespace coconet
