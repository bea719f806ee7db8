#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "coconet/language/bags.h"
#include "coconet/language/composed.h"
#include "coconet/language/expression_parser.h"
#include "coconet/language/gradient.h"

namespace coconet {
namespace {

/// A call that stands for several operations.
struct ComposedCall {
  absl::string_view name;
  size_t operands;
  Tensor (*make)(const std::vector<Tensor>& operands);
};

constexpr ComposedCall kComposed[] = {
    {"norm", 1, [](const std::vector<Tensor>& a) { return Norm(a[0]); }},
    {"keep_rows", 2, [](const std::vector<Tensor>& a) { return KeepRows(a[0], a[1]); }},
    {"softmax", 1, [](const std::vector<Tensor>& a) { return Softmax(a[0]); }},
    {"layer_norm", 2, [](const std::vector<Tensor>& a) { return LayerNorm(a[0], a[1]); }},
    {"rms_norm", 2, [](const std::vector<Tensor>& a) { return RmsNorm(a[0], a[1]); }},
    {"cross_entropy", 2, [](const std::vector<Tensor>& a) { return CrossEntropy(a[0], a[1]); }},
    {"grad", 2, [](const std::vector<Tensor>& a) { return Grad(a[0], a[1]); }},
    {"stop_gradient", 1, [](const std::vector<Tensor>& a) { return StopGradient(a[0]); }},
};

/// One of a dtype, a tensor and one of its dimensions.
struct IndexedCall {
  absl::string_view name;
  Tensor (*make)(DType dtype, Tensor of, int dim);
};

constexpr IndexedCall kIndexed[] = {{"extent", Extent}, {"argmax", ArgMax}};

absl::Status UnknownCall(absl::string_view name) {
  std::vector<std::string> known;
  for (absl::string_view call : CallNames()) known.emplace_back(call);
  for (const ComposedCall& call : kComposed) known.emplace_back(call.name);
  for (const IndexedCall& call : kIndexed) known.emplace_back(call.name);
  return absl::InvalidArgumentError(absl::StrCat("unknown operation '", name, "'",
                                                 DidYouMean(name, known), "; operations are ",
                                                 absl::StrJoin(known, ", ")));
}

/// What was read into a member; the status of reading.
template <class T>
absl::Status ReadInto(T& member, absl::StatusOr<T> read) {
  if (read.ok()) member = *std::move(read);
  return read.status();
}

}  // namespace

using Result = Expression::Result;

Result Expression::Call(absl::string_view name) {
  for (const ComposedCall& call : kComposed) {
    if (call.name != name) continue;
    ASSIGN_OR_RETURN(const std::vector<Tensor> operands, Operands(name, call.operands));
    return call.make(operands);
  }
  for (const IndexedCall& call : kIndexed) {
    if (call.name == name) return Indexed(call.make);
  }
  if (name == "all_to_all") return AllToAllCall();
  std::optional<Op> op = FindCall(name);
  if (!op.has_value()) return UnknownCall(name);
  return OpCall(*std::move(op));
}

Result Expression::Indexed(Tensor (*make)(DType, Tensor, int)) {
  ASSIGN_OR_RETURN(const DType dtype, ParseDTypeWord(words_));
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const Tensor of, Whole());
  RETURN_IF_ERROR(words_.Expect(","));
  ASSIGN_OR_RETURN(const int dim, NamedDim(of));
  return make(dtype, of, dim);
}

Result Expression::AllToAllCall() {
  ASSIGN_OR_RETURN(std::vector<Tensor> operands, FirstOperands(1));
  const bool has_counts =
      !LastArgumentFollows(kRow<struct AllToAll>) && !words_.Peek(1).Is("owned");
  if (words_.Peek().Is(",") && has_counts) {
    RETURN_IF_ERROR(words_.Expect(","));
    ASSIGN_OR_RETURN(const Tensor counts, Whole());
    operands.push_back(counts);
  }
  struct AllToAll all_to_all;
  Op op = all_to_all;
  RETURN_IF_ERROR(ArgumentsAfter(op, operands));
  if (operands.size() == 2)
    return AllToAll(operands[0], operands[1], std::get<struct AllToAll>(op).to);
  return program_.Add(std::move(op), std::move(operands));
}

Result Expression::OpCall(Op op) {
  const OpRow& row = RowOf(op);
  bool separated = true;  // a comma, if one is due, was read
  for (const Attribute& attribute : row.before) {
    if (attribute.may_be_left_out && !words_.Peek(1).Is(",")) continue;
    if (!separated) RETURN_IF_ERROR(words_.Expect(","));
    RETURN_IF_ERROR(Argument(attribute, op, {}));
    separated = false;
  }
  const size_t least = static_cast<size_t>(ArityOf(op).least),
               most = static_cast<size_t>(ArityOf(op).most);
  std::vector<Tensor> operands;
  if (least > 0) {
    if (!separated) RETURN_IF_ERROR(words_.Expect(","));
    ASSIGN_OR_RETURN(operands,
                     row.after.size() > 0 ? FirstOperands(least) : Operands(OpText(op), least));
  }
  while (operands.size() < most && words_.Peek().Is(",") &&
         (row.after.size() == 0 || !LastArgumentFollows(row))) {
    RETURN_IF_ERROR(words_.Expect(","));
    ASSIGN_OR_RETURN(const Tensor operand, Comparison());
    operands.push_back(operand);
  }
  RETURN_IF_ERROR(ArgumentsAfter(op, operands));
  if (const auto* pointwise = std::get_if<Pointwise>(&op))
    return Elementwise(pointwise->fn, std::move(operands));
  return program_.Add(std::move(op), std::move(operands));
}

absl::StatusOr<std::vector<Tensor>> Expression::Operands(absl::string_view name, size_t count) {
  std::vector<Tensor> operands;
  while (operands.empty() || words_.Accept(",")) {
    ASSIGN_OR_RETURN(const Tensor operand, Whole());
    operands.push_back(operand);
  }
  if (!words_.Peek().Is(")")) return words_.Expected("',' or ')'");
  if (operands.size() == count) return operands;
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": want ", count, " operand", count == 1 ? "" : "s", ", have ", operands.size()));
}

absl::StatusOr<std::vector<Tensor>> Expression::FirstOperands(size_t count) {
  std::vector<Tensor> operands;
  while (operands.size() < count) {
    if (!operands.empty()) RETURN_IF_ERROR(words_.Expect(","));
    ASSIGN_OR_RETURN(const Tensor operand, Whole());
    operands.push_back(operand);
  }
  return operands;
}

bool Expression::LastArgumentFollows(const OpRow& row) const {
  const bool has_flags = absl::c_any_of(
      row.after, [](const Attribute& attribute) { return attribute.form == Written::kFlag; });
  if (has_flags) {  // and no other attributes behind the operands
    return absl::c_any_of(row.after,
                          [&](const Attribute& flag) { return words_.Peek(1).Is(flag.what); });
  }
  return words_.Peek(2).Is(")") || words_.Peek(1).Is("[");
}

absl::Status Expression::ArgumentsAfter(Op& op, const std::vector<Tensor>& operands) {
  std::vector<const Attribute*> flags;
  for (const Attribute& attribute : RowOf(op).after) {
    switch (attribute.form) {
      case Written::kFlag:
        flags.push_back(&attribute);
        continue;
      case Written::kStream:
      case Written::kSpan:
        if (words_.Accept(",")) RETURN_IF_ERROR(Argument(attribute, op, operands));
        continue;
      case Written::kDims:
        while (words_.Accept(",")) RETURN_IF_ERROR(Argument(attribute, op, operands));
        continue;
      case Written::kNumber:
      case Written::kValue:
      case Written::kInteger:
      case Written::kRank:
      case Written::kDim:
      case Written::kCut:
      case Written::kShape:
      case Written::kDType:
      case Written::kReduceKind:
      case Written::kShift:
      case Written::kPooling:
      case Written::kName:
        RETURN_IF_ERROR(words_.Expect(","));
        RETURN_IF_ERROR(Argument(attribute, op, operands));
        continue;
    }
    CC_CHECK(false);
  }
  while (!flags.empty() && words_.Accept(",")) {
    const auto flag = std::find_if(flags.begin(), flags.end(),
                                   [&](const Attribute* f) { return words_.Accept(f->what); });
    if (flag == flags.end()) {
      return words_.Expected(absl::StrJoin(flags, " or ", [](std::string* out, const Attribute* f) {
        absl::StrAppend(out, f->what);
      }));
    }
    if (values_.contains((*flag)->what)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", (*flag)->what, "' is a flag of ", RowOf(op).spelling.name,
                       " here, and the name of a value: give the value another name"));
    }
    Get<bool>(op, **flag) = true;
  }
  return absl::OkStatus();
}

absl::Status Expression::Argument(const Attribute& a, Op& op, const std::vector<Tensor>& operands) {
  switch (a.form) {
    case Written::kNumber: {
      ASSIGN_OR_RETURN(const Number number, SignedNumber(a.what));
      Get<double>(op, a) = number.real();
      return absl::OkStatus();
    }
    case Written::kValue:
      return ReadInto(Get<Number>(op, a), SignedNumber(a.what));
    case Written::kInteger:
      return ReadInto(Get<int64_t>(op, a), words_.Integer<int64_t>(a.what));
    case Written::kRank:
      return ReadInto(Get<int>(op, a), Int("the number of a rank"));
    case Written::kStream:
      return ReadInto(Get<int64_t>(op, a), words_.Integer<int64_t>("the number of a stream"));
    case Written::kDim:
      return ReadInto(Get<int>(op, a), ParseSlicedDim(words_));
    case Written::kCut:
      return ReadInto(Get<Cut>(op, a), ParseCut(words_));
    case Written::kDims: {
      ASSIGN_OR_RETURN(const int dim, NamedDim(operands[0]));
      Get<std::vector<int>>(op, a).push_back(dim);
      return absl::OkStatus();
    }
    case Written::kShape:
      return ReadInto(Get<Shape>(op, a), ParseShape(words_));
    case Written::kDType:
      return ReadInto(Get<DType>(op, a), ParseDTypeWord(words_));
    case Written::kReduceKind: {
      const std::optional<ReduceKind> kind = ParseReduceKind(words_.Peek().text);
      if (!kind.has_value()) return words_.Expected("sum, max or min");
      words_.Take();
      Get<ReduceKind>(op, a) = *kind;
      return absl::OkStatus();
    }
    case Written::kSpan:
      for (const Span span : {Span::kNode, Span::kAcross}) {
        if (!words_.Accept(coconet::Name(span))) continue;
        Get<Span>(op, a) = span;
        return absl::OkStatus();
      }
      return words_.Expected("node or across");
    case Written::kShift: {
      const bool next = words_.Accept("next");
      if (!next && !words_.Accept("previous")) return words_.Expected("next or previous");
      Get<int>(op, a) = next ? 1 : -1;
      return absl::OkStatus();
    }
    case Written::kPooling: {
      const bool sums = words_.Accept(coconet::Name(Pooling::kSum));
      if (!sums && !words_.Accept(coconet::Name(Pooling::kMean)))
        return words_.Expected("sum or mean");
      Get<Pooling>(op, a) = sums ? Pooling::kSum : Pooling::kMean;
      return absl::OkStatus();
    }
    case Written::kName:
      if (words_.Peek().kind != Token::Kind::kName) return words_.Expected(a.what);
      Get<std::string>(op, a) = std::string(words_.Take().text);
      return absl::OkStatus();
    case Written::kFlag:
      break;  // read together
  }
  CC_CHECK(false);
}

absl::StatusOr<Number> Expression::SignedNumber(absl::string_view what) {
  const bool negative = words_.Accept("-");
  Number number = std::numeric_limits<double>::infinity();
  if (words_.Peek().kind == Token::Kind::kNumber) {
    ASSIGN_OR_RETURN(number, Literal());
  } else if (!words_.Accept("inf")) {
    return words_.Expected(what);
  }
  return negative ? EvalNumbers(Pw::kNeg, &number) : number;
}

absl::StatusOr<Number> Expression::Literal() {
  const Token token = words_.Take();
  const bool is_exact = token.number.is_integer() ||
                        token.text.find_first_not_of("0123456789") != absl::string_view::npos ||
                        NumberText(token.number) == token.text;
  if (is_exact) return token.number;
  return absl::InvalidArgumentError(
      absl::StrCat("want a number that 64 bits or a double hold, have ", token.text,
                   "; the nearest is ", NumberText(token.number)));
}

absl::StatusOr<int> Expression::Int(absl::string_view what) {
  ASSIGN_OR_RETURN(const int64_t value, words_.Integer<int64_t>(what));
  return static_cast<int>(std::min<int64_t>(value, std::numeric_limits<int>::max()));
}

absl::StatusOr<int> Expression::NamedDim(const Tensor& operand) {
  if (words_.Peek().kind != Token::Kind::kName || operand.id() < 0)
    return Int("the number or name of a dimension");
  const Shape& shape = operand.type().shape;
  const Dim named(std::string(words_.Peek().text));
  const auto at = std::find(shape.begin(), shape.end(), named);
  if (at == shape.end()) return words_.Expected(absl::StrCat("a dimension of ", Text(shape)));
  if (std::count(at, shape.end(), named) > 1) {
    return words_.Expected(absl::StrCat("the number of a dimension, since several dimensions of ",
                                        Text(shape), " have the size ", words_.Peek().text));
  }
  words_.Take();
  return static_cast<int>(at - shape.begin());
}

}  // namespace coconet
