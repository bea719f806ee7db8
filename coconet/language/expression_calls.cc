#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "coconet/language/expression_parser.h"

namespace coconet {

using Result = Expression::Result;

const Expression::CallRule Expression::kCalls[] = {
    {"const", &Expression::ConstCall},
    {"world", &Expression::WorldCall},
    {"cast", &Expression::CastCall},
    {"all_reduce", &Expression::AllReduceCall},
    {"reduce_scatter", &Expression::ReduceScatterCall},
    {"all_gather", &Expression::AllGatherCall},
    {"sum", &Expression::SumCall},
    {"mean", &Expression::MeanCall},
    {"amax", &Expression::AMaxCall},
    {"amin", &Expression::AMinCall},
    {"total", &Expression::TotalCall},
    {"norm", &Expression::NormCall},
    {"softmax", &Expression::SoftmaxCall},
    {"layer_norm", &Expression::LayerNormCall},
    {"rms_norm", &Expression::RmsNormCall},
    {"dropout", &Expression::DropoutCall},
    {"round_stochastic", &Expression::RoundStochasticCall},
    {"matmul", &Expression::MatMulCall},
    {"transpose", &Expression::TransposeCall},
    {"reshape", &Expression::ReshapeCall},
    {"slice", &Expression::SliceCall},
    {"shard", &Expression::ShardCall},
    {"broadcast", &Expression::BroadcastCall},
    {"reduce", &Expression::ReduceCall},
    {"all_to_all", &Expression::AllToAllCall},
    {"send", &Expression::SendCall},
    {"update", &Expression::UpdateCall},
};

Result Expression::Call(absl::string_view name) {
  for (const CallRule& call : kCalls) {
    if (call.name == name) return (this->*call.rule)();
  }
  if (const std::optional<Pw> fn = FindPointwise(name); fn.has_value()) return PointwiseCall(*fn);
  std::vector<std::string> known;
  for (const CallRule& call : kCalls) known.emplace_back(call.name);
  for (const PwInfo& info : AllPointwise()) known.emplace_back(info.name);
  return absl::InvalidArgumentError(absl::StrCat("unknown operation '", name, "'",
                                                 DidYouMean(name, known), "; operations are ",
                                                 absl::StrJoin(known, ", ")));
}

Result Expression::ConstCall() {
  const double sign = words_.Accept("-") ? -1 : 1;
  double magnitude = std::numeric_limits<double>::infinity();
  if (words_.Peek().kind == Token::Kind::kNumber) {
    magnitude = words_.Take().number;
  } else if (!words_.Accept("inf")) {
    return words_.Expected("a number or inf");
  }
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const DType dtype, ParseDTypeWord(words_));
  return program_.Constant(sign * magnitude, dtype);
}

Result Expression::WorldCall() {
  ASSIGN_OR_RETURN(const DType dtype, ParseDTypeWord(words_));
  return program_.world(dtype);
}

Result Expression::CastCall() {
  ASSIGN_OR_RETURN(const DType dtype, ParseDTypeWord(words_));
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  return program_.Add(Cast{dtype}, {operand});
}

Result Expression::AllReduceCall() {
  ASSIGN_OR_RETURN(const ReduceKind kind, Kind());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  ASSIGN_OR_RETURN(const Span span, OptionalSpan());
  return program_.Add(Op{std::in_place_type<struct AllReduce>, kind, span}, {operand});
}

Result Expression::ReduceScatterCall() {
  ASSIGN_OR_RETURN(const ReduceKind kind, Kind());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const int dim, ParseSlicedDim(words_));
  ASSIGN_OR_RETURN(const Span span, OptionalSpan());
  return program_.Add(Op{std::in_place_type<struct ReduceScatter>, kind, dim, span}, {operand});
}

Result Expression::AllGatherCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  ASSIGN_OR_RETURN(const Span span, OptionalSpan());
  return program_.Add(Op{std::in_place_type<struct AllGather>, span}, {operand});
}

Result Expression::FoldCall(FoldKind kind) {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  ASSIGN_OR_RETURN(std::vector<int> dims, Dims(operand));
  return program_.Add(Fold{kind, std::move(dims)}, {operand});
}

/// The kind may be left out: a sum.
Result Expression::TotalCall() {
  ReduceKind kind = ReduceKind::kSum;
  if (words_.Peek(1).Is(",")) {
    ASSIGN_OR_RETURN(kind, Kind());
    RETURN_IF_ERROR(words_.Expect(","));
  }
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  return Total(operand, kind);
}

Result Expression::NormCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  return Norm(operand);
}

Result Expression::SoftmaxCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  return Softmax(operand);
}

Result Expression::LayerNormCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const Tensor epsilon, Comparison());
  return LayerNorm(operand, epsilon);
}

Result Expression::RmsNormCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const Tensor epsilon, Comparison());
  return RmsNorm(operand, epsilon);
}

Result Expression::DropoutCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const Tensor seed, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  if (words_.Peek().kind != Token::Kind::kNumber) return words_.Expected("the rate, a number");
  const double rate = words_.Take().number;
  int64_t stream = 0;
  if (words_.Accept(",")) {
    ASSIGN_OR_RETURN(stream, Integer("the number of a stream"));
  }
  return Dropout(operand, rate, seed, stream);
}

Result Expression::RoundStochasticCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const Tensor seed, Comparison());
  int64_t stream = 0;
  if (words_.Accept(",")) {
    ASSIGN_OR_RETURN(stream, Integer("the number of a stream"));
  }
  return RoundStochastic(operand, seed, stream);
}

Result Expression::MatMulCall() {
  ASSIGN_OR_RETURN(const Tensor a, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const Tensor b, Comparison());
  bool transpose_a = false, transpose_b = false;
  while (words_.Accept(",")) {
    if (words_.Accept("transpose_a"))
      transpose_a = true;
    else if (words_.Accept("transpose_b"))
      transpose_b = true;
    else
      return words_.Expected("transpose_a or transpose_b");
  }
  return MatMul(a, b, transpose_a, transpose_b);
}

Result Expression::TransposeCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  ASSIGN_OR_RETURN(std::vector<int> order, Dims(operand));
  return Transpose(operand, std::move(order));
}

Result Expression::ReshapeCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(Shape shape, ParseShape(words_));
  return Reshape(operand, std::move(shape));
}

Result Expression::SliceCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const int dim, ParseSlicedDim(words_));
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const int64_t begin, Integer("where the range begins"));
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const int64_t end, Integer("where the range ends"));
  return SubTensor(operand, dim, begin, end);
}

Result Expression::ShardCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const int dim, ParseSlicedDim(words_));
  return Shard(operand, dim);
}

Result Expression::BroadcastCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const int64_t root, Integer("the number of a rank"));
  return Broadcast(operand, static_cast<int>(root));
}

Result Expression::ReduceCall() {
  ASSIGN_OR_RETURN(const ReduceKind kind, Kind());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const int64_t root, Integer("the number of a rank"));
  return Reduce(kind, operand, static_cast<int>(root));
}

Result Expression::AllToAllCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const int dim, ParseSlicedDim(words_));
  return AllToAll(operand, dim);
}

Result Expression::SendCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  if (words_.Accept("next")) return Send(operand, 1);
  if (words_.Accept("previous")) return Send(operand, -1);
  return words_.Expected("next or previous");
}

Result Expression::UpdateCall() {
  ASSIGN_OR_RETURN(const Tensor state, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const Tensor value, Comparison());
  return program_.Add(Op{std::in_place_type<struct Update>}, {state, value});
}

Result Expression::PointwiseCall(Pw fn) {
  const PwInfo& info = Info(fn);
  std::vector<Tensor> operands;
  while (operands.empty() || words_.Accept(",")) {
    ASSIGN_OR_RETURN(const Tensor operand, Comparison());
    operands.push_back(operand);
  }
  if (static_cast<int>(operands.size()) != info.arity) {
    return absl::InvalidArgumentError(absl::StrCat(info.name, ": want ", info.arity, " operand",
                                                   info.arity == 1 ? "" : "s", ", have ",
                                                   operands.size()));
  }
  return Elementwise(fn, std::move(operands));
}

absl::StatusOr<Span> Expression::OptionalSpan() {
  if (!words_.Accept(",")) return Span::kAll;
  for (const Span span : {Span::kNode, Span::kAcross}) {
    if (words_.Accept(coconet::Name(span))) return span;
  }
  return words_.Expected("node or across");
}

absl::StatusOr<ReduceKind> Expression::Kind() {
  const std::optional<ReduceKind> kind = ParseReduceKind(words_.Peek().text);
  if (!kind.has_value()) return words_.Expected("sum, max or min");
  words_.Take();
  return *kind;
}

absl::StatusOr<int64_t> Expression::Integer(absl::string_view what) {
  int64_t value = 0;
  if (words_.Peek().kind != Token::Kind::kNumber || !absl::SimpleAtoi(words_.Peek().text, &value))
    return words_.Expected(what);
  words_.Take();
  return value;
}

absl::StatusOr<std::vector<int>> Expression::Dims(const Tensor& operand) {
  std::vector<int> dims;
  while (words_.Accept(",")) {
    if (words_.Peek().kind == Token::Kind::kName && operand.id() >= 0) {
      const std::string name(words_.Peek().text);
      const Shape& shape = operand.type().shape;
      const auto at = std::find(shape.begin(), shape.end(), Dim(name));
      if (at == shape.end()) return words_.Expected(absl::StrCat("a dimension of ", Text(shape)));
      dims.push_back(static_cast<int>(at - shape.begin()));
      words_.Take();
      continue;
    }
    ASSIGN_OR_RETURN(const int64_t dim, Integer("the number or name of a dimension"));
    dims.push_back(static_cast<int>(std::min<int64_t>(dim, std::numeric_limits<int>::max())));
  }
  return dims;
}

}  // namespace coconet
