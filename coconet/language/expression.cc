#include "coconet/language/expression.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "coconet/language/expression_parser.h"

namespace coconet {
namespace {

// Parentheses, calls and signs within each other: more than anybody writes, less than the stack
// holds.
constexpr int kMaxNesting = 200;

}  // namespace

using Result = Expression::Result;

Result Expression::Whole() {
  ASSIGN_OR_RETURN(Tensor left, Conjunction());
  while (words_.Accept("or")) {
    ASSIGN_OR_RETURN(const Tensor right, Conjunction());
    left = Or(left, right);
  }
  return left;
}

Result Expression::Conjunction() {
  ASSIGN_OR_RETURN(Tensor left, Negation());
  while (words_.Accept("and")) {
    ASSIGN_OR_RETURN(const Tensor right, Negation());
    left = And(left, right);
  }
  return left;
}

Result Expression::Negation() {
  int negations = 0;
  while (words_.Accept("not")) ++negations;
  ASSIGN_OR_RETURN(Tensor value, Comparison());
  for (; negations > 0; --negations) value = Not(value);
  return value;
}

Result Expression::Comparison() {
  static constexpr std::pair<absl::string_view, Pw> kComparisons[] = {
      {"<", Pw::kLt},  {"<=", Pw::kLe}, {">", Pw::kGt},
      {">=", Pw::kGe}, {"==", Pw::kEq}, {"!=", Pw::kNe}};
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
    return absl::InvalidArgumentError(
        absl::StrCat("the expression is nested deeper than ", kMaxNesting, " levels"));
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
  ASSIGN_OR_RETURN(Tensor value, Operand());
  while (words_.Accept("[")) {
    ASSIGN_OR_RETURN(value, Ranges(value));
  }
  return value;
}

Result Expression::Ranges(Tensor value) {
  const auto bound = [&](absl::string_view what) -> absl::StatusOr<int64_t> {
    const bool negative = words_.Accept("-");
    ASSIGN_OR_RETURN(const int64_t number, words_.Integer<int64_t>(what));
    return negative ? -number : number;
  };
  int dim = 0;
  do {
    int64_t begin = 0;
    std::optional<int64_t> end;
    if (!words_.Peek().Is(":")) {
      ASSIGN_OR_RETURN(begin, bound("where a range begins, or ':'"));
    }
    RETURN_IF_ERROR(words_.Expect(":"));
    if (!words_.Peek().Is(",") && !words_.Peek().Is("]")) {
      ASSIGN_OR_RETURN(end, bound("where a range ends, ',' or ']'"));
    }
    value = Between(value, dim++, begin, end);
  } while (words_.Accept(","));
  RETURN_IF_ERROR(words_.Expect("]"));
  return value;
}

Result Expression::Operand() {
  switch (words_.Peek().kind) {
    case Token::Kind::kNumber: {
      ASSIGN_OR_RETURN(const Number number, Literal());
      return Tensor(number);
    }
    case Token::Kind::kName:
    case Token::Kind::kValue: {
      const Token name = words_.Take();
      if (!words_.Accept("(")) return Name(name.text);
      ASSIGN_OR_RETURN(const Tensor value, Call(name.text));
      RETURN_IF_ERROR(words_.Expect(")"));
      return value;
    }
    case Token::Kind::kSymbol:
    case Token::Kind::kEnd:
      break;
  }
  if (!words_.Accept("(")) return words_.Expected("a value");
  ASSIGN_OR_RETURN(const Tensor value, Whole());
  RETURN_IF_ERROR(words_.Expect(")"));
  return value;
}

Result Expression::Name(absl::string_view name) {
  if (auto value = values_.find(name); value != values_.end()) return value->second;
  if (name == "world") return program_.world();
  std::vector<std::string> known = {"world"};
  for (const auto& [other, value] : values_) known.push_back(other);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown name '", name, "'", DidYouMean(name, known)));
}

absl::StatusOr<Tensor> ParseExpression(Words& words, const Values& values, Program& program) {
  return Expression(words, values, program).Whole();
}

absl::StatusOr<Tensor> ParseCall(Words& words, const Values& values, Program& program) {
  return Expression(words, values, program).Operand();
}

absl::StatusOr<DType> ParseDTypeWord(Words& words) {
  const std::optional<DType> dtype = ParseDType(words.Peek().text);
  if (!dtype.has_value()) {
    std::vector<std::string> known;
    for (DType type : kAllDTypes) known.emplace_back(Name(type));
    const absl::Status error =
        words.Expected(absl::StrCat("a dtype (", absl::StrJoin(known, " "), ")"));
    return absl::InvalidArgumentError(
        absl::StrCat(error.message(), DidYouMean(words.Peek().text, known)));
  }
  words.Take();
  return *dtype;
}

namespace {

/// "N", "4", "2*N"
absl::StatusOr<Dim> ParseTerm(Words& words) {
  if (words.Peek().kind == Token::Kind::kName) return Dim(std::string(words.Take().text));
  ASSIGN_OR_RETURN(const int64_t size, words.Integer<int64_t>("a size"));
  if (!words.Accept("*")) return Dim(size);
  ASSIGN_OR_RETURN(const std::string symbol, words.Name("the name of a size"));
  return Times(size, Dim(symbol));
}

}  // namespace

absl::StatusOr<Shape> ParseShape(Words& words) {
  Shape shape;
  RETURN_IF_ERROR(words.Expect("["));
  if (words.Accept("]")) return shape;
  do {
    std::vector<Dim> terms;
    do {
      ASSIGN_OR_RETURN(Dim term, ParseTerm(words));
      terms.push_back(std::move(term));
    } while (words.Accept("+"));
    shape.push_back(terms.size() == 1 ? terms[0] : SumOf(terms));
  } while (words.Accept(","));
  RETURN_IF_ERROR(words.Expect("]"));
  return shape;
}

absl::StatusOr<Cut> ParseCut(Words& words) {
  if (!words.Accept("owned")) return ParseSlicedDim(words);
  if (!words.Accept("(")) return Cut::Owned();
  Cut to = Cut::Owned();
  if (words.Accept("by")) {
    ASSIGN_OR_RETURN(to.by, words.Name("the name of a list of weights"));
  } else {
    if (!words.Accept("after")) return words.Expected("by and a list of weights, or after");
    std::vector<int64_t> before;
    do {
      ASSIGN_OR_RETURN(const int64_t weight, words.Integer<int64_t>("a weight"));
      before.push_back(weight);
    } while (words.Accept(","));
    to.turn = Turn(std::move(before));
  }
  RETURN_IF_ERROR(words.Expect(")"));
  return to;
}

absl::StatusOr<int> ParseSlicedDim(Words& words) {
  if (words.Accept("flat")) return Layout::kFlat;
  return words.Integer<int>("flat or the number of a dimension");
}

}  // namespace coconet
