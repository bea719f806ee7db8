#include "coconet/language/language.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "coconet/language/gradient_flow.h"

namespace coconet {
namespace {

constexpr absl::string_view kNumbersOnly =
    "a cast, collective or update was given plain numbers only; make a tensor of them with "
    "Constant";

/// Operands from this one on share a dtype: all but a select's condition.
size_t FirstOfOneDType(Pw fn) { return fn == Pw::kSelect ? 1 : 0; }

}  // namespace

const TensorType& Tensor::type() const {
  static const auto& mistake = *new TensorType{DType::kF32, {}, Layout::Replicated()};
  if (kind_ == Kind::kMistake) return mistake;
  CC_CHECK(is_node());
  return program_->checker_.types()[id_];
}

Program::Program(absl::string_view name) : graph_{std::string(name), {}} {
  if (!name.empty() && !IsIdentifier(name)) {
    status_ =
        absl::InvalidArgumentError(absl::StrCat("'", name, "' cannot be the name of a program"));
  }
}

Program::~Program() = default;

Tensor Program::Input(absl::string_view name, DType dtype, Shape shape, Layout layout) {
  return AddNode(coconet::Input{std::string(name), {dtype, std::move(shape), layout}});
}

Tensor Program::State(absl::string_view name, DType dtype, Shape shape, Layout layout) {
  return AddNode(coconet::State{std::string(name), {dtype, std::move(shape), layout}});
}

Tensor Program::Scalar(absl::string_view name, DType dtype) {
  return Input(name, dtype, {}, Layout::Replicated());
}

Tensor Program::Each(Tensor declared) {
  if (!status_.ok()) return Tensor(Tensor::Kind::kMistake, this, -1);
  bool* each = nullptr;
  if (declared.is_node() && declared.program_ == this)
    each = DeclaredIn(graph_.nodes[declared.id_].op).each;
  if (each == nullptr) return Mistake("each: want an input or a state of this program");
  *each = true;
  return declared;
}

void Program::Sizes(absl::string_view symbol, std::vector<int64_t> sizes) {
  if (graph_.lists.try_emplace(std::string(symbol), std::move(sizes)).second) return;
  Mistake(absl::StrCat("sizes of ", symbol, ": given twice"));
}

Tensor Program::Constant(const Number& value, DType dtype) { return AddNode(Const{value, dtype}); }

Tensor Program::world(std::optional<DType> dtype) {
  if (!dtype.has_value()) return Tensor(Tensor::Kind::kWorld, this, -1);
  return AddNode(WorldSize{*dtype});
}

Tensor Program::count(DType dtype, Shape shape) { return AddNode(Count{dtype, std::move(shape)}); }

Tensor Program::rank(DType dtype) { return AddNode(RankNumber{dtype}); }

void Program::Output(absl::string_view name, Tensor value) {
  Add(coconet::Output{std::string(name)}, {value});
}

absl::StatusOr<Graph> Program::graph() const {
  RETURN_IF_ERROR(status_);
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (!As<struct Update>(graph_, id) && !As<coconet::Output>(graph_, id)) continue;
    RETURN_IF_ERROR(CheckLists(graph_));
    return graph_;
  }
  return absl::InvalidArgumentError("the program updates no state and has no output");
}

Tensor Program::Add(Op op, std::vector<Tensor> operands) {
  for (const Tensor& operand : operands) {
    if (operand.program_ != nullptr && operand.program_ != this) {
      return Mistake(absl::StrCat(OpText(op), ": an operand belongs to another program"));
    }
    if (operand.kind_ == Tensor::Kind::kMistake) return Mistake(kNumbersOnly);
  }
  if (const auto* cast = std::get_if<Cast>(&op); cast != nullptr && !operands[0].is_node()) {
    return Typed(operands[0], cast->dtype);
  }
  if (auto* fold = std::get_if<Fold>(&op); fold != nullptr && operands[0].is_node()) {
    const Shape& shape = operands[0].type().shape;
    if (shape.empty() && fold->dims.empty()) return operands[0];  // of one element
    std::sort(fold->dims.begin(), fold->dims.end());
    std::vector<int> all(shape.size());
    std::iota(all.begin(), all.end(), 0);
    if (fold->dims == all) fold->dims.clear();  // all: written as none
  }
  if (std::holds_alternative<struct ScatterAdd>(op) && operands[0].is_node() &&
      operands[1].is_node() && operands[1].type().shape.empty()) {
    // Kernels take their indices from tensors.
    for (Tensor& operand : operands) {
      if (!operand.is_node()) continue;
      const Layout& layout = operand.type().layout;
      Shape shape = operand.type().shape;
      shape.insert(shape.begin(), Dim(1));
      // A reshape of extents of 1 would cut the new dimension instead of the one that is sliced.
      operand = layout.cut() && layout.dim != Layout::kFlat ? Expand(operand, std::move(shape))
                                                            : Reshape(operand, std::move(shape));
    }
  }
  if (StreamOf(op).has_value() && operands[1].kind_ == Tensor::Kind::kNumber) {
    operands[1] = Constant(operands[1].number_, DType::kI64);
  }
  // Numbers become constants of the dtype of the first tensor among the operands that share one.
  size_t first = operands.size();
  if (const auto* pointwise = std::get_if<Pointwise>(&op)) first = FirstOfOneDType(pointwise->fn);
  if (std::holds_alternative<struct Update>(op)) first = 0;
  std::optional<DType> dtype;
  for (size_t i = first; i < operands.size() && !dtype.has_value(); ++i) {
    if (operands[i].is_node()) dtype = operands[i].type().dtype;
  }
  std::vector<NodeId> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    Tensor operand = operands[i];
    if (!operand.is_node()) {
      if (i < first)
        return Mistake(
            absl::StrCat(CallText(op, operands), ": want a tensor, have a plain number"));
      if (!dtype.has_value()) {
        return Mistake(absl::StrCat(CallText(op, operands),
                                    ": no operand has a dtype; give one to a number or to world"));
      }
      operand = Typed(operand, *dtype);
    }
    inputs.push_back(operand.id());
  }
  return AddNode(std::move(op), std::move(inputs));
}

Tensor Program::AddNode(Op op, std::vector<NodeId> inputs) {
  if (!status_.ok()) return Tensor(Tensor::Kind::kMistake, this, -1);
  if (auto* constant = std::get_if<Const>(&op); constant != nullptr) {
    // One form of each number.
    if (IsFloat(constant->dtype) && constant->value == constant->value.real())
      constant->value = constant->value.real();
    if (!IsFloat(constant->dtype) && Stored(constant->dtype, constant->value) == constant->value)
      constant->value = Stored(constant->dtype, constant->value);
  }
  const NodeId id = graph_.Add(std::move(op), std::move(inputs));
  status_ = checker_.CheckNext(graph_);
  return Tensor(status_.ok() ? Tensor::Kind::kNode : Tensor::Kind::kMistake, this,
                status_.ok() ? id : -1);
}

Tensor Program::Mistake(absl::string_view message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(message);
  return Tensor(Tensor::Kind::kMistake, this, -1);
}

Tensor Program::Typed(const Tensor& open, DType dtype) {
  return open.kind_ == Tensor::Kind::kWorld ? world(dtype) : Constant(open.number_, dtype);
}

std::string Program::OperandText(const Tensor& operand) const {
  switch (operand.kind_) {
    case Tensor::Kind::kNode:
      return Described(graph_, operand.id_);
    case Tensor::Kind::kNumber:
      return NumberText(operand.number_);
    case Tensor::Kind::kWorld:
      return "world";
    case Tensor::Kind::kMistake:
      return "?";
  }
  CC_CHECK(false);
}

std::string Program::CallText(const Op& op, const std::vector<Tensor>& operands) const {
  std::vector<std::string> texts;
  for (const Tensor& operand : operands) texts.push_back(OperandText(operand));
  return OpText(op, texts);
}

Tensor Structured(Op op, std::vector<Tensor> operands) {
  for (const Tensor& operand : operands) {
    if (operand.program_ != nullptr) return operand.program_->Add(std::move(op), operands);
  }
  return Tensor(Tensor::Kind::kMistake, nullptr, -1);
}

Tensor Elementwise(Pw fn, std::vector<Tensor> operands) {
  CC_CHECK(static_cast<int>(operands.size()) == Info(fn).arity);
  Number numbers[3];
  size_t count = 0;
  for (const Tensor& operand : operands) {
    if (operand.kind_ != Tensor::Kind::kNumber)
      return Structured(Pointwise{fn}, std::move(operands));
    numbers[count++] = operand.number_;
  }
  return Tensor(EvalNumbers(fn, numbers));
}

Tensor Extent(DType dtype, Tensor a, int dim) {
  if (a.program_ == nullptr) return Tensor(Tensor::Kind::kMistake, nullptr, -1);
  if (a.kind_ == Tensor::Kind::kMistake) return a;
  Program& program = *a.program_;
  const size_t rank = a.is_node() ? a.type().shape.size() : 0;
  if (dim >= 0 && static_cast<size_t>(dim) < rank)
    return program.count(dtype, {a.type().shape[dim]});
  return program.Mistake(absl::StrCat("extent of dimension ", dim, " of ", program.OperandText(a),
                                      ": want a dimension below ", rank));
}

Tensor Between(Tensor a, int dim, int64_t begin, std::optional<int64_t> end) {
  const int rank = a.is_node() ? static_cast<int>(a.type().shape.size()) : 0;
  if (dim >= 0 && dim < rank) {
    if (begin == 0 && !end.has_value()) return a;
    const Dim extent = a.type().shape[dim];
    const bool counts_from_end = begin < 0 || !end.has_value() || *end < 0;
    if (counts_from_end && !extent.bound()) {
      return a.program_->Mistake(
          absl::StrCat("a range of dimension ", dim, " of ", a.program_->OperandText(a), " : ",
                       Text(a.type()), " is counted from its end, and ", Text(extent),
                       " is no number yet; count from the beginning, and say where it ends"));
    }
    if (begin < 0) begin += extent.size;
    if (!end.has_value()) end = extent.size;
    if (*end < 0) *end += extent.size;
  }
  return SubTensor(a, dim, begin, end.value_or(begin));
}

Tensor operator+(Tensor a, Tensor b) { return Elementwise(Pw::kAdd, {a, b}); }
Tensor operator-(Tensor a, Tensor b) { return Elementwise(Pw::kSub, {a, b}); }
Tensor operator*(Tensor a, Tensor b) { return Elementwise(Pw::kMul, {a, b}); }
Tensor operator/(Tensor a, Tensor b) { return Elementwise(Pw::kDiv, {a, b}); }
Tensor operator-(Tensor a) { return Elementwise(Pw::kNeg, {a}); }
Tensor operator<(Tensor a, Tensor b) { return Elementwise(Pw::kLt, {a, b}); }
Tensor operator<=(Tensor a, Tensor b) { return Elementwise(Pw::kLe, {a, b}); }
Tensor operator>(Tensor a, Tensor b) { return Elementwise(Pw::kGt, {a, b}); }
Tensor operator>=(Tensor a, Tensor b) { return Elementwise(Pw::kGe, {a, b}); }
Tensor Equal(Tensor a, Tensor b) { return Elementwise(Pw::kEq, {a, b}); }
Tensor NotEqual(Tensor a, Tensor b) { return Elementwise(Pw::kNe, {a, b}); }

Tensor Dropout(Tensor a, double rate, Tensor seed, int64_t stream) {
  return CallOf<struct Dropout>({a, seed}, rate, stream);
}

Tensor RoundStochastic(Tensor a, Tensor seed, int64_t stream) {
  return CallOf<StochasticRound>({a, seed}, stream);
}

Tensor MatMul(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, bool transpose_a,
              bool transpose_b) {
  return CallOf<struct MatMul>({a, b, scale_a, scale_b}, transpose_a, transpose_b);
}

}  // namespace coconet
