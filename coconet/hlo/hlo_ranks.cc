#include "coconet/hlo/hlo_ranks.h"

#include <numeric>
#include <utility>
#include <vector>

#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

bool IsLocal(Tensor tensor) { return tensor.id() >= 0 && tensor.type().layout == Layout::Local(); }

HloShape WithFirst(int64_t extent, HloShape shape) {
  shape.dims.insert(shape.dims.begin(), extent);
  return shape;
}

HloShape WithoutDim(HloShape shape, int dim) {
  shape.dims.erase(shape.dims.begin() + dim);
  return shape;
}

/// A rank's part of what is sliced over a dimension that has one element a rank.
HloValue OwnPart(Tensor sliced, int dim, HloShape shape) {
  HloValue part = HloArrays::Of(CallOf<Fold>({sliced}, FoldKind::kSum, std::vector<int>{dim}),
                                std::move(shape));
  for (int& at : part.at) at += at >= dim ? 1 : 0;
  return part;
}

}  // namespace

HloValue HloRanks::Row(const HloValue& a, const HloValue& row, int dim) {
  return HloArrays::Of(Gather(arrays_.Whole(a), arrays_.Whole(row), dim), [&] {
    HloShape shape = WithoutDim(a.shape, dim);
    shape.dims.insert(shape.dims.begin() + dim, row.shape.dims.begin(), row.shape.dims.end());
    return shape;
  }());
}

HloValue HloRanks::ByRank(const HloValue& of_ranks) {
  const HloValue rank =
      HloArrays::Of(arrays_.program().rank(DType::kI32), HloShape::Of(HloType::kS32));
  return Row(of_ranks, rank, 0);
}

HloValue HloRanks::Place() {
  std::vector<Number> places(static_cast<size_t>(groups_.ranks));
  for (const auto& group : groups_.groups) {
    for (size_t i = 0; i < group.size(); ++i) places[static_cast<size_t>(group[i])] = i;
  }
  return ByRank(arrays_.Literal(places, HloShape::Of(HloType::kS32, {groups_.ranks})));
}

HloValue HloRanks::Members() {
  const auto size = static_cast<size_t>(groups_.size());
  std::vector<Number> members(static_cast<size_t>(groups_.ranks) * size);
  for (const auto& group : groups_.groups) {
    for (int64_t rank : group)
      std::copy(group.begin(), group.end(), members.begin() + rank * groups_.size());
  }
  return ByRank(
      arrays_.Literal(members, HloShape::Of(HloType::kS32, {groups_.ranks, groups_.size()})));
}

Tensor HloRanks::AsParts(const HloValue& a) {
  // Zeros that are sliced: of its part each rank takes its own elements. -0 + a is a, for any a.
  const DType dtype = *DTypeOf(a.shape.type);
  Shape shape(a.shape.dims.size() + 1, Dim(1));
  shape[0] = groups_.ranks;
  const Tensor zeros =
      Expand(arrays_.program().Constant(IsFloat(dtype) ? -0.0 : 0.0, dtype), shape);
  return arrays_.Whole(a) + Shard(zeros, 0);
}

HloValue HloRanks::OfWorld(const HloValue& a) {
  HloShape shape = WithFirst(groups_.ranks, a.shape);
  if (a.number.has_value() || !IsLocal(a.tensor)) {
    std::vector<int64_t> dims(a.shape.dims.size());
    std::iota(dims.begin(), dims.end(), 1);
    return HloArrays::Broadcast(a, dims, std::move(shape));
  }
  return HloArrays::Of(AllGather(AsParts(a)), std::move(shape));
}

HloValue HloRanks::Gathered(const HloValue& a) {
  const HloValue all = OfWorld(a);
  return groups_.IsWorld() ? all : Row(all, Members(), 0);
}

HloValue HloRanks::Reduced(ReduceKind kind, const HloValue& a) {
  if (groups_.size() == 1) return a;
  if (a.number.has_value() || !IsLocal(a.tensor)) {
    if (kind != ReduceKind::kSum) return a;
    if (groups_.size() > 0)
      return arrays_.Apply(Pw::kMul, a, CountAs(*DTypeOf(a.shape.type), groups_.size()));
    // The number of ranks is open: an AllReduce sums one copy from each rank.
    const Tensor own = Select(arrays_.program().rank(DType::kI32) >= 0, arrays_.Whole(a), 0);
    return HloArrays::Of(AllReduce(kind, own), a.shape);
  }
  if (groups_.groups.size() == 1) return HloArrays::Of(AllReduce(kind, arrays_.Whole(a)), a.shape);
  return arrays_.Folded(WithinRank(kind), Gathered(a), {0}, a.shape);
}

HloValue HloRanks::ReducedAndScattered(ReduceKind kind, const HloValue& a) {
  HloShape shape = WithoutDim(a.shape, 0);
  if (groups_.IsWorld() && !a.number.has_value() && IsLocal(a.tensor))
    return OwnPart(ReduceScatter(kind, arrays_.Whole(a), 0), 0, std::move(shape));
  return Row(Reduced(kind, a), Place(), 0);
}

HloValue HloRanks::Exchanged(const HloValue& a) {
  if (groups_.IsWorld()) return OwnPart(AllToAll(AsParts(a), 1), 1, a.shape);
  return Row(Gathered(a), Place(), 1);
}

HloValue HloRanks::Sent(const HloValue& a, absl::Span<const Number> from) {
  const HloValue sources =
      arrays_.Literal(from, HloShape::Of(HloType::kS32, {static_cast<int64_t>(from.size())}));
  return Row(OfWorld(a), ByRank(sources), 0);
}

}  // namespace coconet
