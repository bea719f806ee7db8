#include "coconet/expression.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

// Parentheses, calls and signs within each other: more than anybody writes, less than the stack holds.
constexpr int kMaxNesting = 200;

using Result = absl::StatusOr<Tensor>;

/// Recursive descent, one method a rule of the grammar (docs/language.md).
class Expression {
 public:
  Expression(Words& words, const Values& values, Program& program)
      : words_(words), values_(values), program_(program) {}

  Result Comparison();
  Result Primary();

 private:
  Result Sum();
  Result Product();
  Result Signed();
  Result Name(absl::string_view name);

  // The name and '(' of a call are read, ')' is not.
  Result Call(absl::string_view name);
  Result ConstCall();
  Result WorldCall();
  Result CastCall();
  Result AllReduceCall();
  Result ReduceScatterCall();
  Result AllGatherCall();
  Result UpdateCall();
  Result PointwiseCall(Pw fn);
  absl::StatusOr<ReduceKind> Kind();

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

const Expression::CallRule Expression::kCalls[] = {
    {"const", &Expression::ConstCall},
    {"world", &Expression::WorldCall},
    {"cast", &Expression::CastCall},
    {"all_reduce", &Expression::AllReduceCall},
    {"reduce_scatter", &Expression::ReduceScatterCall},
    {"all_gather", &Expression::AllGatherCall},
    {"update", &Expression::UpdateCall},
};

Result Expression::Comparison() {
  static constexpr std::pair<absl::string_view, Pw> kComparisons[] = {
      {"<", Pw::kLt}, {"<=", Pw::kLe}, {">", Pw::kGt}, {">=", Pw::kGe}, {"==", Pw::kEq}, {"!=", Pw::kNe}};
  ASSIGN_OR_RETURN(const Tensor left, Sum());
  for (const auto& [symbol, fn] : kComparisons) {
    if (!words_.Accept(symbol)) continue;
    ASSIGN_OR_RETURN(const Tensor right, Sum());
    return Elementwise(fn, {left, right});
  }
  return left;
}

Result Expression::Sum() {
  ASSIGN_OR_RETURN(Tensor left, Product());
  while (words_.Peek().Is("+") || words_.Peek().Is("-")) {
    const Pw fn = words_.Take().Is("+") ? Pw::kAdd : Pw::kSub;
    ASSIGN_OR_RETURN(const Tensor right, Product());
    left = Elementwise(fn, {left, right});
  }
  return left;
}

Result Expression::Product() {
  ASSIGN_OR_RETURN(Tensor left, Signed());
  while (words_.Peek().Is("*") || words_.Peek().Is("/")) {
    const Pw fn = words_.Take().Is("*") ? Pw::kMul : Pw::kDiv;
    ASSIGN_OR_RETURN(const Tensor right, Signed());
    left = Elementwise(fn, {left, right});
  }
  return left;
}

Result Expression::Signed() {
  // Every way back into the grammar passes here.
  if (nesting_ == kMaxNesting) {
    return absl::InvalidArgumentError(absl::StrCat("the expression is nested deeper than ", kMaxNesting, " levels"));
  }
  ++nesting_;
  Result value = absl::UnknownError("");
  if (words_.Accept("-")) {
    value = Signed();
    if (value.ok()) value = -*value;
  } else {
    value = Primary();
  }
  --nesting_;
  return value;
}

Result Expression::Primary() {
  switch (words_.Peek().kind) {
    case Token::Kind::kNumber: return Tensor(words_.Take().number);
    case Token::Kind::kName:
    case Token::Kind::kValue: {
      const Token name = words_.Take();
      if (!words_.Accept("(")) return Name(name.text);
      ASSIGN_OR_RETURN(const Tensor value, Call(name.text));
      RETURN_IF_ERROR(words_.Expect(")"));
      return value;
    }
    case Token::Kind::kSymbol:
    case Token::Kind::kEnd: break;
  }
  if (!words_.Accept("(")) return words_.Expected("a value");
  ASSIGN_OR_RETURN(const Tensor value, Comparison());
  RETURN_IF_ERROR(words_.Expect(")"));
  return value;
}

Result Expression::Name(absl::string_view name) {
  if (auto value = values_.find(name); value != values_.end()) return value->second;
  if (name == "world") return program_.world();
  std::vector<std::string> known = {"world"};
  for (const auto& [other, value] : values_) known.push_back(other);
  return absl::InvalidArgumentError(absl::StrCat("unknown name '", name, "'", DidYouMean(name, known)));
}

Result Expression::Call(absl::string_view name) {
  for (const CallRule& call : kCalls) {
    if (call.name == name) return (this->*call.rule)();
  }
  if (const std::optional<Pw> fn = FindPointwise(name); fn.has_value()) return PointwiseCall(*fn);
  std::vector<std::string> known;
  for (const CallRule& call : kCalls) known.emplace_back(call.name);
  for (const PwInfo& info : AllPointwise()) known.emplace_back(info.name);
  return absl::InvalidArgumentError(absl::StrCat("unknown operation '", name, "'", DidYouMean(name, known),
                                                 "; operations are ", absl::StrJoin(known, ", ")));
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
  return program_.Add(Op{std::in_place_type<struct AllReduce>, kind}, {operand});
}

Result Expression::ReduceScatterCall() {
  ASSIGN_OR_RETURN(const ReduceKind kind, Kind());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const int dim, ParseSlicedDim(words_));
  return program_.Add(Op{std::in_place_type<struct ReduceScatter>, kind, dim}, {operand});
}

Result Expression::AllGatherCall() {
  ASSIGN_OR_RETURN(const Tensor operand, Comparison());
  return program_.Add(Op{std::in_place_type<struct AllGather>}, {operand});
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
                                                   info.arity == 1 ? "" : "s", ", have ", operands.size()));
  }
  return Elementwise(fn, std::move(operands));
}

absl::StatusOr<ReduceKind> Expression::Kind() {
  const std::optional<ReduceKind> kind = ParseReduceKind(words_.Peek().text);
  if (!kind.has_value()) return words_.Expected("sum, max or min");
  words_.Take();
  return *kind;
}

}  // namespace

absl::StatusOr<Tensor> ParseExpression(Words& words, const Values& values, Program& program) {
  return Expression(words, values, program).Comparison();
}

absl::StatusOr<Tensor> ParseCall(Words& words, const Values& values, Program& program) {
  return Expression(words, values, program).Primary();
}

absl::StatusOr<DType> ParseDTypeWord(Words& words) {
  const std::optional<DType> dtype = ParseDType(words.Peek().text);
  if (!dtype.has_value()) {
    return words.Expected(absl::StrCat("a dtype (", absl::StrJoin(kAllDTypes, " ",
                                                                   [](std::string* out, DType type) {
                                                                     absl::StrAppend(out, Name(type));
                                                                   }),
                                       ")"));
  }
  words.Take();
  return *dtype;
}

absl::StatusOr<int> ParseSlicedDim(Words& words) {
  if (words.Accept("flat")) return Layout::kFlat;
  int dim = 0;
  if (words.Peek().kind != Token::Kind::kNumber || !absl::SimpleAtoi(words.Peek().text, &dim)) {
    return words.Expected("flat or the number of a dimension");
  }
  words.Take();
  return dim;
}

}  // namespace coconet
