#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/language/bags.h"
#include "coconet/language/gradient_flow.h"

namespace coconet {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440;          // 1 / sqrt(2)
constexpr double kTwoOverSqrtPi = 1.12837916709551257390;     // 2 / sqrt(pi)
constexpr double kOneOverSqrtTwoPi = 0.39894228040143267794;  // 1 / sqrt(2 pi)

int DimsOf(const Tensor& a) { return static_cast<int>(a.type().shape.size()); }

Tensor ZeroUnless(Tensor condition, Tensor a) { return Select(condition, a, 0); }

/// Where `a` is the extremum that was found among its elements. What a kernel keeps in f32 and
/// what it stores are equal when both are rounded.
Tensor IsFound(Tensor a, Tensor extremum) {
  const DType dtype = a.type().dtype;
  if (IsNarrowFloat(dtype)) a = CastTo(dtype, CastTo(DType::kF32, a));
  return Equal(a, extremum);
}

/// No gradient flows through what is flat.
[[noreturn]] Tensor Flat() { CC_CHECK(false); }

/// At the edges as torch has it: x^0 is 1 everywhere, and 0^k is 0 around any k > 0.
Tensor OfPow(const std::vector<Tensor>& a, Tensor y, size_t k, Tensor g) {
  if (k == 1) return g * Select(And(Equal(a[0], 0), a[1] >= 0), 0, y * Log(a[0]));
  const Tensor slope = g * a[1] * Pow(a[0], a[1] - 1);
  return Gradients::NumberOf(a[1]).value_or(0) != 0 ? slope : Select(Equal(a[1], 0), 0, slope);
}

/// The gradient of Min and Max. Equal operands share it. If one is NaN, both pass it on.
Tensor OfExtremum(const std::vector<Tensor>& a, size_t k, Tensor loses, Tensor g) {
  return Select(Equal(a[k], a[1 - k]), g * 0.5, Select(loses, 0, g));
}

Tensor OfGelu(Tensor a, Tensor g) {
  const Tensor share = 0.5 * (1 + Erf(a * kSqrtHalf));
  return g * (share + a * kOneOverSqrtTwoPi * Exp(-0.5 * (a * a)));
}

Tensor OfSilu(Tensor a, Tensor g) {
  const Tensor share = Sigmoid(a);
  return g * (share * (1 + a * (1 - share)));
}

/// The derivative of an elementwise function y = fn(a, ...) by operand k, times `g`: the column of
/// pointwise.inc. Requires that it is not 0 everywhere.
Tensor OfPointwise(Pw fn, const std::vector<Tensor>& a, Tensor y, size_t k, Tensor g) {
  switch (fn) {
#define FLAT Flat()
#define ROW(name, text, kernel, value, gradient, ...) \
  case Pw::k##name:                                   \
    return gradient;
#define UNARY(...) ROW(__VA_ARGS__)
#define BINARY(...) ROW(__VA_ARGS__)
#define TERNARY(...) ROW(__VA_ARGS__)
#include "coconet/ir/pointwise.inc"
#undef FLAT
#undef ROW
#undef UNARY
#undef BINARY
#undef TERNARY
  }
  CC_CHECK(false);
}

/// Whether a reshape of a gradient found other slices than those of `layout`, as it may where an
/// extent of 1 is sliced, or a vector.
bool HasOtherSlices(const Tensor& g, const Layout& layout) {
  return layout.sliced() && g.type().layout.sliced() && g.type().layout != layout;
}

/// A gradient in `shape`, sliced as the operand is.
Tensor ReshapedFor(const Tensor& operand, Tensor g, Shape shape) {
  g = Reshape(g, std::move(shape));
  return HasOtherSlices(g, operand.type().layout) ? Repeated(AllGather(g), operand) : g;
}

/// Sums what an operand was repeated over in a result like `result`.
Tensor SummedTo(const Tensor& operand, const Tensor& result, Tensor g) {
  const Shape shape = operand.type().shape;
  const Shape full = result.type().shape;
  const size_t more = full.size() - shape.size();
  std::vector<int> sums;
  Shape repeats;  // of which g has one element
  for (size_t d = 0; d < full.size(); ++d) {
    const bool was_repeated = d < more || (shape[d - more] == Dim(1) && full[d] != Dim(1));
    if (!was_repeated) continue;
    const size_t missing = full.size() - g.type().shape.size();
    if (d < missing || g.type().shape[d - missing] != full[d])
      repeats.push_back(full[d]);
    else
      sums.push_back(static_cast<int>(d - missing));
  }
  if (!sums.empty()) {
    // Slices over all dimensions have parts of rows, which are summed when they are together.
    const bool sums_rows = g.type().layout.dim == Layout::kFlat && sums.size() < full.size();
    const bool is_local = operand.type().layout.kind == Layout::Kind::kLocal;
    if (sums_rows) g = is_local ? Gradients::OwnPart(g) : AllGather(g);
    g = Sum(g, sums);
  }
  if (!repeats.empty()) g = g * Gradients::CountLike(g, repeats);
  const Shape& left = g.type().shape;
  if (left.size() <= shape.size()) return g;
  return ReshapedFor(operand, g,
                     Shape(left.end() - static_cast<int64_t>(shape.size()), left.end()));
}

Tensor OfFold(const Fold& fold, Tensor a, Tensor y, Tensor g) {
  const Shape& shape = a.type().shape;
  Shape folded;
  for (int d = 0; d < DimsOf(a); ++d) {
    if (fold.dims.empty() || absl::c_linear_search(fold.dims, d)) folded.push_back(shape[d]);
  }
  switch (fold.kind) {
    case FoldKind::kSum:
      return g;
    case FoldKind::kMean:
      return g / Gradients::CountLike(g, folded);
    case FoldKind::kMax:
    case FoldKind::kMin: {
      const Tensor found = IsFound(a, y);
      const Tensor share = g / Sum(CastTo(g.type().dtype, found), fold.dims);
      return Select(found, share, Gradients::ZeroOrNaN(y));
    }
  }
  CC_CHECK(false);
  return g;
}

/// Equal ones share.
Tensor OfTotal(const struct Total& total, Tensor a, Tensor y, Tensor g) {
  if (total.kind == ReduceKind::kSum) return g;
  const Tensor found = Equal(a, y);
  const Tensor share = g / Total(CastTo(g.type().dtype, found));
  return Select(found, share, Gradients::ZeroOrNaN(y));
}

bool IsWhole(const Tensor& a) { return !a.type().layout.sliced() && IsBound(a.type().shape); }

/// [..., K] as [rows, K].
Tensor AsMatrix(Tensor a) {
  Shape rows(a.type().shape.begin(), a.type().shape.end() - 1);
  return Reshape(a, {NumElements(rows), a.type().shape.back()});
}

Tensor OfMatMul(const struct MatMul& op, const std::vector<Tensor>& operands, size_t k, Tensor g) {
  const Tensor a = operands[0], b = operands[1];
  Tensor to = g;
  if (k == 0) {
    to = op.transpose_a ? MatMul(b, g, op.transpose_b, true) : MatMul(g, b, false, !op.transpose_b);
  } else if (DimsOf(b) == 2 && DimsOf(a) > 2 && !op.transpose_a && IsWhole(a) && IsWhole(g)) {
    // One product over all rows, instead of a sum of products.
    const Tensor rows = AsMatrix(a), of_rows = AsMatrix(g);
    to = op.transpose_b ? MatMul(of_rows, rows, true) : MatMul(rows, of_rows, true);
  } else {
    to = op.transpose_b ? MatMul(g, a, true, op.transpose_a) : MatMul(a, g, !op.transpose_a, false);
  }
  if (to.id() < 0) return to;
  return SummedTo(operands[k], to, to);
}

Tensor OfTranspose(const struct Transpose& op, Tensor g) {
  std::vector<int> back(op.order.size());
  for (size_t d = 0; d < op.order.size(); ++d) back[op.order[d]] = static_cast<int>(d);
  return Transpose(g, std::move(back));
}

/// Zeros like a range of `a`.
Tensor ZerosLike(Tensor a, int dim, int64_t begin, int64_t end) {
  const Tensor range = SubTensor(a, dim, begin, end);
  return range.id() < 0 ? range : ZeroUnless(Iota(DType::kI32, range, dim) < 0, range);
}

std::optional<Tensor> OfSubTensor(const struct SubTensor& op, Tensor a, Tensor g) {
  const Dim& extent = a.type().shape[op.dim];
  if (!extent.bound()) return std::nullopt;
  std::vector<Tensor> parts;
  if (op.begin > 0) parts.push_back(ZerosLike(a, op.dim, 0, op.begin));
  parts.push_back(g);
  if (op.end < extent.size) parts.push_back(ZerosLike(a, op.dim, op.end, extent.size));
  return parts.size() == 1 ? g : Concat(std::move(parts), op.dim);
}

std::optional<Tensor> OfConcat(const struct Concat& op, const std::vector<Tensor>& operands,
                               size_t k, Tensor g) {
  int64_t begin = 0;
  for (size_t i = 0; i <= k; ++i) {
    const Dim& extent = operands[i].type().shape[op.dim];
    if (!extent.bound()) return std::nullopt;
    if (i < k) begin += extent.size;
  }
  return SubTensor(g, op.dim, begin, begin + operands[k].type().shape[op.dim].size);
}

/// The order of dimensions that begins with [first, first + count).
std::vector<int> OrderFrom(int dims, int first, int count) {
  std::vector<int> order(dims);
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + first, order.begin() + first + count);
  return order;
}

std::optional<Tensor> OfGather(const struct Gather& op, const std::vector<Tensor>& operands,
                               Tensor g) {
  const Tensor table = operands[0], indices = operands[1];
  if (g.type().dtype == DType::kF64) return std::nullopt;  // sums by index are f32
  const int dims = DimsOf(indices);
  if (op.dim > 0) g = Transpose(g, OrderFrom(DimsOf(g), op.dim, dims));
  Shape shape = table.type().shape;
  std::rotate(shape.begin(), shape.begin() + op.dim, shape.begin() + op.dim + 1);
  const Tensor to = CastTo(table.type().dtype, ScatterAdd(g, indices, std::move(shape)));
  if (op.dim == 0) return to;
  return OfTranspose({OrderFrom(DimsOf(table), op.dim, 1)}, to);
}

/// [...] as [..., 1, ...]: with so many dimensions of extent 1 behind.
Tensor WithOnes(Tensor a, int count) {
  Shape shape = a.type().shape;
  shape.resize(shape.size() + count, Dim(1));
  return Reshape(a, std::move(shape));
}

std::optional<Tensor> OfEmbeddingBag(const struct EmbeddingBag& op,
                                     const std::vector<Tensor>& operands, size_t k, Tensor g) {
  const Tensor table = operands[0], indices = operands[1];
  const bool has_weights = operands.size() > 2 && operands.back().type().dtype == DType::kF32;
  if (DimsOf(table) != 2 || DimsOf(indices) != 2) return std::nullopt;  // leading, or ragged
  const Dim bags = indices.type().shape[0], columns = table.type().shape[1];
  const Layout& cut = g.type().layout;
  const Layout layout = cut.dim == 1 ? cut.Over(2) : cut;
  g = Reshape(g, {bags, 1, columns});
  if (HasOtherSlices(g, layout)) g = Shard(AllGather(g), CutOf(layout));
  if (k > 0) {  // of the weights
    const Tensor rows = CastTo(DType::kF32, Gather(table, indices));
    return Reshape(Sum(rows * g, {2}), indices.type().shape);
  }
  if (op.pooling == Pooling::kMean) {
    const Tensor is_row = And(indices >= 0, indices < Extent(DType::kI32, table, 0));
    const Tensor rows = Sum(CastTo(DType::kF32, is_row), {1});
    g = g / Max(WithOnes(rows, 1), 1);
  }
  const Shape& shape = table.type().shape;
  return CastTo(table.type().dtype, has_weights ? ScatterAdd(g, indices, operands.back(), shape)
                                                : ScatterAdd(g, indices, shape));
}

Tensor OfScatterAdd(const std::vector<Tensor>& operands, size_t k, Tensor g) {
  const Tensor updates = operands[0], indices = operands[1];
  const int rest = DimsOf(updates) - DimsOf(indices);  // dimensions of a row
  const Tensor rows = Gather(g, indices);
  if (k == 2) {
    std::vector<int> dims(rest);
    std::iota(dims.begin(), dims.end(), DimsOf(indices));
    const Tensor products = rows * CastTo(DType::kF32, updates);
    return rest == 0 ? products : Reshape(Sum(products, dims), indices.type().shape);
  }
  const Tensor to = operands.size() > 2 ? rows * WithOnes(operands[2], rest) : rows;
  return CastTo(updates.type().dtype, SummedTo(updates, to, to));
}

}  // namespace

Tensor Repeated(Tensor gradient, Tensor value) {
  if (gradient.id() < 0 || value.id() < 0) return gradient;
  const TensorType &have = gradient.type(), &want = value.type();
  if (want.shape.empty()) return gradient;
  const Layout layout =
      want.layout.kind == Layout::Kind::kAuto ? Layout::Replicated() : want.layout;
  // What a rank contributes to a Replicated value is Local.
  const bool fits = have.layout == layout || layout == Layout::Replicated();
  if (have.shape == want.shape && fits) return gradient;
  return Select(Iota(DType::kI32, value, 0) >= 0, gradient, 0);
}

std::optional<Tensor> GradientOfOperand(const Op& op, const std::vector<Tensor>& operands,
                                        Tensor result, size_t k, Tensor gradient) {
  using Result = std::optional<Tensor>;
  const Tensor operand = operands[k];
  // What moves elements wants all of them.
  const auto whole = [&](auto rule) -> Result {
    const Tensor g = Repeated(gradient, result);
    return g.id() < 0 ? g : rule(g);
  };
  return std::visit(
      Match{
          [&](const Pointwise& op) -> Result {
            const Tensor to = OfPointwise(op.fn, operands, result, k, gradient);
            return to.id() < 0 ? to : SummedTo(operand, result, to);
          },
          [&](const Cast&) -> Result { return CastTo(operand.type().dtype, gradient); },
          [&](const StochasticRound&) -> Result { return CastTo(DType::kF32, gradient); },
          [&](const Fold& op) -> Result { return OfFold(op, operand, result, gradient); },
          [&](const struct Update&) -> Result { return gradient; },
          [&](const struct Total& op) -> Result { return OfTotal(op, operand, result, gradient); },
          [&](const struct Dropout& op) {
            return whole([&](Tensor g) { return Dropout(g, op.rate, operands[1], op.stream); });
          },
          [&](const struct MatMul& op) {
            return whole([&](Tensor g) { return OfMatMul(op, operands, k, g); });
          },
          [&](const struct Transpose& op) {
            return whole([&](Tensor g) { return OfTranspose(op, g); });
          },
          [&](const struct Reshape&) {
            return whole([&](Tensor g) { return ReshapedFor(operand, g, operand.type().shape); });
          },
          [&](const struct Expand&) {
            return whole([&](Tensor g) { return SummedTo(operand, g, g); });
          },
          [&](const struct Reverse& op) {
            return whole([&](Tensor g) { return Reverse(g, op.dims); });
          },
          [&](const struct SubTensor& op) {
            return whole([&](Tensor g) { return OfSubTensor(op, operand, g); });
          },
          [&](const struct Concat& op) {
            return whole([&](Tensor g) { return OfConcat(op, operands, k, g); });
          },
          [&](const struct Gather& op) {
            return whole([&](Tensor g) { return OfGather(op, operands, g); });
          },
          [&](const struct EmbeddingBag& op) {
            return whole([&](Tensor g) { return OfEmbeddingBag(op, operands, k, g); });
          },
          [&](const struct ScatterAdd&) {
            return whole([&](Tensor g) { return OfScatterAdd(operands, k, g); });
          },
          [&](const struct Shard&) { return whole([&](Tensor g) { return g; }); },
          [&](const struct Send& op) {
            return whole([&](Tensor g) { return Send(g, -op.shift); });
          },
          [&](const OneOf<Input, State, Const, WorldSize, Count, RankNumber, BitCast, struct Iota,
                          struct AllReduce, struct ReduceScatter, struct AllGather,
                          struct Broadcast, ReduceTo, struct AllToAll, Opaque, Output> auto&)
              -> Result { return std::nullopt; },
      },
      op);
}

}  // namespace coconet
