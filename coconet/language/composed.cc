#include "coconet/language/composed.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "coconet/language/bags.h"
#include "coconet/language/gradient_flow.h"

namespace coconet {
namespace {

/// What all ranks' parts of `a` fold to.
Tensor Whole(FoldKind kind, Tensor a, std::vector<int> dims) {
  const Tensor folded = Structured(Fold{kind, std::move(dims)}, {a});
  const bool partial = a.id() >= 0 && folded.id() >= 0 && a.type().layout.cut() &&
                       folded.type().layout == Layout::Local();
  return partial ? AllReduce(AcrossRanks(kind), folded) : folded;
}

/// f(a), calculated in f32 where `a` is narrower: squares of f16 overflow soon.
template <class F>
Tensor InF32(Tensor a, F f) {
  const bool narrow = a.id() >= 0 && IsNarrowFloat(a.type().dtype);
  return narrow ? CastTo(a.type().dtype, f(CastTo(DType::kF32, a))) : f(a);
}

/// The last dimension; of a scalar or a mistake none, which the operation then refuses or ignores.
std::vector<int> LastDim(const Tensor& a) {
  if (a.id() < 0 || a.type().shape.empty()) return {};
  return {static_cast<int>(a.type().shape.size()) - 1};
}

/// The greatest of each row of `a`: a constant for gradients, since what is computed from the
/// differences does not depend on it.
Tensor GreatestOfRows(Tensor a) {
  const Tensor greatest = Whole(FoldKind::kMax, a, LastDim(a));
  return greatest.id() == a.id() ? greatest : Gradients::AsConstant(greatest);
}

}  // namespace

Tensor Norm(Tensor a) {
  return InF32(a, [](Tensor x) { return Sqrt(Whole(FoldKind::kSum, x * x, {})); });
}

Tensor ArgMax(DType dtype, Tensor a, int dim) {
  const Tensor index = Iota(dtype, a, dim);  // refuses what is no index or no tensor
  if (index.id() < 0) return index;
  // What a kernel keeps in f32 and what it stores are equal when both are rounded.
  if (const DType narrow = a.type().dtype; IsNarrowFloat(narrow))
    a = CastTo(narrow, CastTo(DType::kF32, a));
  Tensor hit = Equal(a, Whole(FoldKind::kMax, a, {dim}));
  if (a.id() < 0) return hit;
  if (IsFloat(a.type().dtype)) hit = Or(hit, NotEqual(a, a));  // a NaN, which then is the greatest
  return Whole(FoldKind::kMin, Select(hit, index, Extent(dtype, a, dim) - 1), {dim});
}

Tensor AllToAll(Tensor sliced, Tensor counts, Cut to) {
  const Tensor arrived = AllToAll(sliced, to);
  return KeepRows(arrived, AllToAll(counts, to));
}

Tensor KeepRows(Tensor a, Tensor counts) {
  if (a.id() < 0) return a;
  if (counts.id() < 0) return counts;
  const size_t lead = counts.type().shape.size(), dims = a.type().shape.size();
  // For a scalar, or counts of all dimensions, Iota reports that there is no such dimension.
  const Tensor row = Iota(DType::kI32, a, static_cast<int>(lead));
  Shape shape = counts.type().shape;
  shape.resize(std::max(lead, dims), Dim(1));
  // The counts come first, so that they are there when what they count is computed (RowsInUse).
  return Select(Reshape(counts, std::move(shape)) > row, a, 0);
}

Tensor Softmax(Tensor a) {
  return InF32(a, [](Tensor x) {
    const Tensor e = Exp(x - GreatestOfRows(x));
    return e / Whole(FoldKind::kSum, e, LastDim(e));
  });
}

Tensor CrossEntropy(Tensor logits, Tensor target) {
  if (logits.id() < 0) return logits;
  if (target.id() < 0) return target;
  if (IsFloat(logits.type().dtype) && logits.type().dtype != DType::kF64)
    logits = CastTo(DType::kF32, logits);
  const std::vector<int> last = LastDim(logits);
  const int dim = last.empty() ? 0 : last[0];
  const Tensor place = Iota(DType::kI32, logits, dim);  // refuses a scalar
  if (place.id() < 0) return place;
  Shape column = target.type().shape;
  column.emplace_back(1);
  const Tensor wanted = Reshape(target, std::move(column));
  const Tensor shifted = logits - GreatestOfRows(logits);
  const Tensor of_target = Whole(FoldKind::kSum, Select(Equal(place, wanted), shifted, 0), last);
  const Tensor loss = Log(Whole(FoldKind::kSum, Exp(shifted), last)) - of_target;
  return Select(And(wanted >= 0, wanted < Extent(DType::kI32, logits, dim)), loss, 0);
}

Tensor LayerNorm(Tensor a, Tensor epsilon) {
  return InF32(a, [&](Tensor x) {
    const Tensor centred = x - Whole(FoldKind::kMean, x, LastDim(x));
    return centred * Rsqrt(Whole(FoldKind::kMean, centred * centred, LastDim(x)) + epsilon);
  });
}

Tensor RmsNorm(Tensor a, Tensor epsilon) {
  return InF32(
      a, [&](Tensor x) { return x * Rsqrt(Whole(FoldKind::kMean, x * x, LastDim(x)) + epsilon); });
}

}  // namespace coconet
