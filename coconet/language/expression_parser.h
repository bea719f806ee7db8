#ifndef COCONET_LANGUAGE_EXPRESSION_PARSER_H_
#define COCONET_LANGUAGE_EXPRESSION_PARSER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/language/expression.h"

namespace coconet {

/// Recursive descent, one method a rule of the grammar (docs/language.md).
class Expression {
 public:
  using Result = absl::StatusOr<Tensor>;

  Expression(Words& words, const Values& values, Program& program)
      : words_(words), values_(values), program_(program) {}

  Result Comparison();
  Result Primary();

 private:
  Result Sum();
  Result Product();
  Result Signed();
  Result Name(absl::string_view name);

  // The name and '(' of a call are read, ')' is not (expression_calls.cc).
  Result Call(absl::string_view name);
  Result ConstCall();
  Result WorldCall();
  Result CastCall();
  Result AllReduceCall();
  Result ReduceScatterCall();
  Result AllGatherCall();
  Result FoldCall(FoldKind kind);
  Result SumCall() { return FoldCall(FoldKind::kSum); }
  Result MeanCall() { return FoldCall(FoldKind::kMean); }
  Result AMaxCall() { return FoldCall(FoldKind::kMax); }
  Result AMinCall() { return FoldCall(FoldKind::kMin); }
  Result TotalCall();
  Result NormCall();
  Result SoftmaxCall();
  Result LayerNormCall();
  Result RmsNormCall();
  Result DropoutCall();
  Result RoundStochasticCall();
  Result MatMulCall();
  Result TransposeCall();
  Result ReshapeCall();
  Result SliceCall();
  Result ShardCall();
  Result BroadcastCall();
  Result ReduceCall();
  Result AllToAllCall();
  Result SendCall();
  Result UpdateCall();
  Result PointwiseCall(Pw fn);
  absl::StatusOr<ReduceKind> Kind();
  absl::StatusOr<Span> OptionalSpan();
  absl::StatusOr<int64_t> Integer(absl::string_view what);
  /// ", " and a dimension of `operand`, by number or by the name of its extent, again and again.
  absl::StatusOr<std::vector<int>> Dims(const Tensor& operand);

  struct CallRule {
    absl::string_view name;
    Result (Expression::*rule)();
  };
  static const CallRule kCalls[];

  Words& words_;
  const Values& values_;
  Program& program_;
  int nesting_ = 0;
};

}  // namespace coconet

#endif  // COCONET_LANGUAGE_EXPRESSION_PARSER_H_
