#include "coconet/testing/draft.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/ir/infer.h"

namespace coconet {
namespace {

constexpr double kEpsilon = 0.125;  // of norms of rows

/// Beyond it a dtype does not hold a value, or arithmetic on doubles, which the reference does,
/// would not be exact.
double Largest(DType dtype) {
  if (IsNarrowFloat(dtype) && dtype != DType::kBF16) return 0.875 * MaxFinite(dtype);
  return IsFloat(dtype) ? 1e30 : std::exp2(40);
}

double BoundOfData(DType dtype) { return IsFloat(dtype) || dtype == DType::kBool ? 1 : 9; }

}  // namespace

Drafted ProgramDraft::Add(Op op, const std::vector<Drafted>& operands, double bound) {
  std::vector<NodeId> inputs;
  for (const Drafted& operand : operands) {
    if (!operand.there()) return {};
    inputs.push_back(operand.id);
  }
  const NodeId id = graph_.Add(std::move(op), std::move(inputs));
  absl::StatusOr<TensorType> type = InferNode(graph_, id, types_);
  if (!type.ok() || bound > Largest(type->dtype)) {
    graph_.nodes.pop_back();
    return {};
  }
  types_.push_back(*std::move(type));
  return {id, bound};
}

void ProgramDraft::Pop() {
  if (As<Input>(graph_, size() - 1) != nullptr) --inputs_;
  graph_.nodes.pop_back();
  types_.pop_back();
}

Drafted ProgramDraft::NewInput(DType dtype, Shape shape, Layout layout) {
  return Add(Input{absl::StrCat("x", inputs_++), {dtype, std::move(shape), layout}}, {},
             BoundOfData(dtype));
}

Drafted ProgramDraft::NewState(DType dtype, Shape shape, Layout layout) {
  return Add(State{absl::StrCat("s", states_++), {dtype, std::move(shape), layout}}, {},
             BoundOfData(dtype));
}

Drafted ProgramDraft::Number(double value, DType dtype) {
  return Add(Const{value, dtype}, {}, std::fabs(value));
}

Drafted ProgramDraft::Cast(DType dtype, Drafted a) {
  if (!a.there() || type(a).dtype == dtype) return a;
  const double bound = IsFloat(dtype) ? a.bound : std::min(a.bound, MaxFinite(dtype));
  return Add(coconet::Cast{dtype}, {a}, bound);
}

Drafted ProgramDraft::Plus(Drafted a, double number) {
  if (!a.there()) return a;
  return Apply(Pw::kAdd, {a, Number(number, type(a).dtype)}, a.bound + std::fabs(number));
}

Drafted ProgramDraft::Times(Drafted a, double number) {
  if (!a.there()) return a;
  return Apply(Pw::kMul, {a, Number(number, type(a).dtype)}, a.bound * std::fabs(number));
}

Drafted ProgramDraft::Apply(Pw fn, const std::vector<Drafted>& operands, double bound) {
  return Add(Pointwise{fn}, operands, bound);
}

int64_t ProgramDraft::Folded(Drafted a, const std::vector<int>& dims) const {
  const Shape& shape = type(a).shape;
  if (dims.empty()) return NumElements(shape);
  int64_t count = 1;
  for (int dim : dims) count *= shape[dim].size;
  return count;
}

Drafted ProgramDraft::Whole(FoldKind kind, Drafted a, std::vector<int> dims) {
  if (!a.there() || type(a).shape.empty()) return {};
  if (dims.size() == type(a).shape.size()) dims.clear();
  const double bound =
      kind == FoldKind::kSum ? a.bound * static_cast<double>(Folded(a, dims)) : a.bound;
  const Drafted folded = Add(Fold{kind, std::move(dims)}, {a}, bound);
  const bool is_part =
      folded.there() && type(a).layout.cut() && type(folded).layout == Layout::Local();
  return is_part ? Add(AllReduce{AcrossRanks(kind)}, {folded}, bound) : folded;
}

std::vector<int> ProgramDraft::LastDim(Drafted a) const {
  return {static_cast<int>(type(a).shape.size()) - 1};
}

Drafted ProgramDraft::Norm(Drafted a) {
  const Drafted sum = Whole(FoldKind::kSum, Apply(Pw::kMul, {a, a}, a.bound * a.bound), {});
  return Apply(Pw::kSqrt, {sum}, std::sqrt(sum.bound));
}

Drafted ProgramDraft::ArgMax(DType dtype, Drafted a, int dim) {
  if (!a.there() || type(a).shape.empty()) return {};
  const Dim extent = type(a).shape[dim];
  const double bound = static_cast<double>(std::max<int64_t>(extent.size, 1));
  const DType held = type(a).dtype;
  if (IsNarrowFloat(held)) a = Add(coconet::Cast{held}, {Cast(DType::kF32, a)}, a.bound);
  Drafted hit = Apply(Pw::kEq, {a, Whole(FoldKind::kMax, a, {dim})}, 1);
  if (IsFloat(held)) hit = Apply(Pw::kOr, {hit, Apply(Pw::kNe, {a, a}, 1)}, 1);
  const Drafted last = Plus(Add(Count{dtype, {extent}}, {}, bound), -1),
                index = Add(Iota{dtype, dim}, {a}, bound);
  return Whole(FoldKind::kMin, Apply(Pw::kSelect, {hit, index, last}, bound), {dim});
}

Drafted ProgramDraft::Softmax(Drafted a) {
  if (!a.there() || type(a).shape.empty()) return {};
  const Drafted shifted = Apply(Pw::kSub, {a, Whole(FoldKind::kMax, a, LastDim(a))}, 2 * a.bound);
  const Drafted e = Apply(Pw::kExp, {shifted}, 1);
  return Apply(Pw::kDiv, {e, Whole(FoldKind::kSum, e, LastDim(a))}, 1);
}

Drafted ProgramDraft::LayerNorm(Drafted a) {
  if (!a.there() || type(a).shape.empty()) return {};
  const Drafted centred = Apply(Pw::kSub, {a, Whole(FoldKind::kMean, a, LastDim(a))}, 2 * a.bound);
  return RmsNorm(centred);
}

Drafted ProgramDraft::RmsNorm(Drafted a) {
  if (!a.there() || type(a).shape.empty()) return {};
  const Drafted square = Apply(Pw::kMul, {a, a}, a.bound * a.bound);
  const double largest = 1 / std::sqrt(kEpsilon);
  const Drafted scale =
      Apply(Pw::kRsqrt, {Plus(Whole(FoldKind::kMean, square, LastDim(a)), kEpsilon)}, largest);
  return Apply(Pw::kMul, {a, scale}, a.bound * largest);
}

}  // namespace coconet
