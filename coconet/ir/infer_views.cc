#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer_site.h"
#include "coconet/ir/op_table.h"

// Types of what has elements of other places: views, and what takes rows by index.

namespace coconet {

absl::StatusOr<TensorType> Transpose::Infer(const Site& site) const {
  RETURN_IF_ERROR(CheckNotByPlace(site, 0));
  TensorType type = Read(site.type(0));
  std::vector<int> sorted = order, all(type.shape.size());
  absl::c_sort(sorted);
  absl::c_iota(all, 0);
  if (sorted != all) return site.Error("want each dimension of ", site.Operand(0), " once");
  for (size_t d = 0; d < order.size(); ++d) type.shape[d] = site.type(0).shape[order[d]];
  if (!type.layout.sliced() || order == all) return type;
  if (type.layout.dim == Layout::kFlat) {
    return site.Error("parts of an operand sliced flat lie in no parts of the result, ",
                      site.HaveOperands(), "; use all_gather");
  }
  type.layout.dim = static_cast<int>(absl::c_find(order, type.layout.dim) - order.begin());
  return type;
}

namespace {

/// A product of extents: before sizes are bound the symbols are the same, in any order.
using Product = std::pair<uint64_t, std::vector<std::string>>;
Product ProductOf(absl::Span<const Dim> extents) {
  Product product{1, {}};
  for (const Dim& dim : extents)
    dim.bound() ? void(product.first *= static_cast<uint64_t>(dim.size))
                : product.second.push_back(dim.symbol);
  absl::c_sort(product.second);
  return product;
}

/// The layout of a reshape of the operand to shape `to`. If the operand is sliced over d, the
/// result is sliced over the dimension that has d's extent and as many elements before it, so that
/// each rank keeps its part. An operand sliced flat, or a sliced vector, gives a result sliced
/// flat.
absl::StatusOr<Layout> ReshapedLayout(const Site& site, absl::Span<const Dim> to) {
  const absl::Span<const Dim> from = site.type(0).shape;
  const Layout layout = ReadLayout(site.type(0));
  if (!layout.sliced()) return layout;
  RETURN_IF_ERROR(CheckNotByPlace(site, 0));
  if (layout.dim != Layout::kFlat) {
    const Product before = ProductOf(from.first(layout.dim));
    const auto keeps_parts = [&](size_t d) {
      return d < to.size() && to[d] == from[layout.dim] && ProductOf(to.first(d)) == before;
    };
    if (keeps_parts(layout.dim)) return layout;  // of extents of 1 several do
    for (size_t d = 0; d < to.size(); ++d) {
      if (keeps_parts(d)) return layout.Over(static_cast<int>(d));
    }
  }
  if ((layout.dim == Layout::kFlat || from.size() == 1) && !to.empty())
    return layout.Over(Layout::kFlat);
  return site.Error("want a shape in which the sliced dimension stays whole, ", site.HaveOperands(),
                    "; use all_gather");
}

}  // namespace

absl::StatusOr<TensorType> Reshape::Infer(const Site& site) const {
  TensorType type = Read(site.type(0));
  if (absl::Status extents = CheckExtents(shape); !extents.ok())
    return site.Error(extents.message());
  const auto mismatch = [&] {
    return site.Error("want as many elements as ", site.Operand(0), " has, have ", Text(shape));
  };
  if (IsBound(type.shape) && IsBound(shape)) {
    if (NumElements(type.shape) != NumElements(shape)) return mismatch();
  } else if (ProductOf(type.shape) != ProductOf(shape)) {
    return mismatch();
  }
  ASSIGN_OR_RETURN(type.layout, ReshapedLayout(site, shape));
  type.shape = shape;
  return Normalized(type);
}

absl::StatusOr<TensorType> Expand::Infer(const Site& site) const {
  RETURN_IF_ERROR(CheckNotByPlace(site, 0));
  TensorType type = Read(site.type(0));
  if (absl::Status extents = CheckExtents(shape); !extents.ok())
    return site.Error(extents.message());
  const Shape from = type.shape;
  const size_t more = shape.size() - from.size();
  bool fits = from.size() <= shape.size();
  for (size_t d = 0; fits && d < from.size(); ++d)
    fits = from[d] == shape[more + d] || from[d] == Dim(1);
  if (!fits) {
    return site.Error("want a shape to which ", site.Operand(0), " broadcasts, have ", Text(shape));
  }
  if (type.layout.cut()) {
    const int dim = type.layout.dim;
    const bool is_whole = dim == Layout::kFlat ? from == shape : from[dim] == shape[more + dim];
    if (!is_whole) {
      return site.Error("an operand cannot be broadcast along the dimension over which it is ",
                        "sliced, ", site.HaveOperands(), "; use all_gather");
    }
    if (dim != Layout::kFlat) type.layout.dim = dim + static_cast<int>(more);
  }
  type.shape = shape;
  return Normalized(type);
}

absl::StatusOr<TensorType> Reverse::Infer(const Site& site) const {
  RETURN_IF_ERROR(CheckNotByPlace(site, 0));
  TensorType type = Read(site.type(0));
  const int rank = static_cast<int>(type.shape.size());
  std::vector<int> sorted = dims;
  absl::c_sort(sorted);
  if (sorted.empty() || absl::c_adjacent_find(sorted) != sorted.end() || sorted.front() < 0 ||
      sorted.back() >= rank)
    return site.Error("want one or more dimensions below ", rank, ", each once");
  if (type.layout.cut() &&
      (type.layout.dim == Layout::kFlat || absl::c_binary_search(sorted, type.layout.dim))) {
    return site.Error("want dimensions over which the operand is not sliced, ", site.HaveOperands(),
                      "; use all_gather");
  }
  return type;
}

absl::StatusOr<TensorType> SubTensor::Infer(const Site& site) const {
  RETURN_IF_ERROR(CheckNotByPlace(site, 0));
  TensorType type = Read(site.type(0));
  const int rank = static_cast<int>(type.shape.size());
  if (dim < 0 || dim >= rank) return site.Error("want a dimension below ", rank, ", have ", dim);
  const Dim& extent = type.shape[dim];
  if (begin < 0 || begin > end || (extent.bound() && end > extent.size)) {
    return site.Error("want a range within [0, ", Text(extent), "), have [", begin, ", ", end, ")");
  }
  const bool is_all = begin == 0 && extent == Dim(end);
  if (type.layout.sliced() && !is_all &&
      (type.layout.dim == dim || type.layout.dim == Layout::kFlat)) {
    return site.Error("want a range of a dimension that is not sliced, ", site.HaveOperands(),
                      "; use all_gather");
  }
  type.shape[dim] = end - begin;
  return type;
}

namespace {

/// The layout of a concat, as of an elementwise operation: sliced operands are cut alike, over
/// another dimension than the one that is joined.
absl::StatusOr<Layout> JoinedLayout(const Site& site, int dim) {
  Layout joined = Layout::Replicated();
  for (size_t i = 0; i < site.operands().size(); ++i) {
    RETURN_IF_ERROR(CheckNotByPlace(site, i));
    const Layout layout = ReadLayout(site.type(i));
    if (layout.sliced() && (layout.dim == Layout::kFlat || layout.dim == dim)) {
      return site.Error("want operands that are sliced over other dimensions than the one that is ",
                        "joined, have ", site.Operand(i), "; use all_to_all or all_gather");
    }
    if (layout.sliced() && joined.sliced() && layout != joined)
      return site.Error("want operands that are sliced alike, ", site.HaveOperands());
    if (layout.sliced() || (layout == Layout::Local() && !joined.sliced())) joined = layout;
  }
  return joined;
}

}  // namespace

absl::StatusOr<TensorType> InferConcat(const Site& site, const Concat& op) {
  const TensorType& first = site.type(0);
  const int rank = static_cast<int>(first.shape.size());
  if (rank == 0)
    return site.Error("want tensors, ", site.HaveOperands(), "; reshape scalars to [1]");
  if (op.dim < 0 || op.dim >= rank)
    return site.Error("want a dimension below ", rank, ", have ", DimText(op.dim));
  std::vector<Dim> joined;
  for (size_t i = 0; i < site.operands().size(); ++i) {
    const TensorType& type = site.type(i);
    if (type.dtype != first.dtype)
      return site.Error("want operands of one dtype, ", site.HaveOperands(), "; use cast");
    Shape shape = type.shape;
    if (shape.size() == first.shape.size()) {
      joined.push_back(shape[op.dim]);
      shape[op.dim] = first.shape[op.dim];
    }
    if (shape != first.shape) {
      return site.Error("want shapes that differ in dimension ", op.dim, " only, ",
                        site.HaveOperands());
    }
  }
  Shape shape = first.shape;
  shape[op.dim] = SumOf(joined);
  if (absl::Status extents = CheckExtents(shape); !extents.ok())
    return site.Error(extents.message());
  ASSIGN_OR_RETURN(const Layout layout, JoinedLayout(site, op.dim));
  return TensorType{first.dtype, std::move(shape), layout};
}
namespace {

/// The layout of a gather's result: dimension `dim` of the table, the first operand, becomes
/// `index_dims` dimensions.
absl::StatusOr<Layout> GatheredLayout(const Site& site, int dim, int index_dims) {
  const Layout table = ReadLayout(site.type(0)), indices = ReadLayout(site.type(1));
  if (table.sliced() && table.dim == Layout::kFlat)
    return site.Error("rows of a table sliced flat lie on several ranks, ", site.HaveOperands());
  if (table.sliced() && indices != Layout::Replicated()) {
    return site.Error("a sliced table takes indices that are equal on all ranks, ",
                      site.HaveOperands(), "; use all_gather");
  }
  if (table.sliced() && table.dim == dim) return Layout::Local();
  if (table.sliced()) return table.Over(table.dim < dim ? table.dim : table.dim + index_dims - 1);
  const bool local = table == Layout::Local() || indices == Layout::Local();
  if (!indices.sliced()) return local ? Layout::Local() : Layout::Replicated();
  if (indices.dim != Layout::kFlat) return indices.Over(dim + indices.dim);
  if (site.type(0).shape.size() == 1) return indices;
  return site.Error("indices sliced flat take elements of a vector only, not rows, ",
                    site.HaveOperands());
}

}  // namespace

absl::StatusOr<TensorType> InferGather(const Site& site, const Gather& op) {
  const TensorType &table = site.type(0), &indices = site.type(1);
  const int rank = static_cast<int>(table.shape.size());
  if (rank == 0) return site.Error("want a tensor as the table, have ", site.Operand(0));
  if (op.dim < 0 || op.dim >= rank)
    return site.Error("want a dimension below ", rank, ", have ", DimText(op.dim));
  if (indices.dtype != DType::kI32)
    return site.Error("want i32 indices, have ", site.Operand(1), "; use cast");
  for (size_t i : {0, 1}) RETURN_IF_ERROR(CheckNotByPlace(site, i));
  Shape shape = table.shape;
  shape.erase(shape.begin() + op.dim);
  shape.insert(shape.begin() + op.dim, indices.shape.begin(), indices.shape.end());
  if (absl::Status extents = CheckExtents(shape); !extents.ok())
    return site.Error(extents.message());
  ASSIGN_OR_RETURN(const Layout layout,
                   GatheredLayout(site, op.dim, static_cast<int>(indices.shape.size())));
  return Normalized({table.dtype, std::move(shape), layout});
}

namespace {

/// The operands of an embedding bag by what they are; -1: absent.
struct BagOperands {
  int offsets = -1, weights = -1;
};

/// The operands behind table and indices: i32 offsets, f32 weights.
absl::StatusOr<BagOperands> BagOperandsOf(const Site& site) {
  BagOperands operands;
  for (size_t i = 2; i < site.operands().size(); ++i) {
    const bool is_offsets = site.type(i).dtype == DType::kI32;
    int& operand = is_offsets ? operands.offsets : operands.weights;
    if (operand >= 0 || (is_offsets && operands.weights >= 0) ||
        (!is_offsets && site.type(i).dtype != DType::kF32)) {
      return site.Error("want a table, i32 indices, then i32 offsets if any, then f32 weights if ",
                        "any, ", site.HaveOperands());
    }
    operand = static_cast<int>(i);
  }
  return operands;
}

/// The shape of the result. Leading dimensions are those of the table and of the indices.
absl::StatusOr<Shape> BagShape(const Site& site, const BagOperands& operands) {
  const Shape &table = site.type(0).shape, &indices = site.type(1).shape;
  if (operands.offsets >= 0) {
    if (table.size() != 2 || indices.size() != 1 || site.type(operands.offsets).shape.size() != 1)
      return site.Error("want a table of two dimensions, and vectors of indices and offsets, ",
                        site.HaveOperands());
    return Shape{site.type(operands.offsets).shape[0], table[1]};
  }
  const size_t lead = table.size() - std::min<size_t>(table.size(), 2);
  if (table.size() < 2 || indices.size() != table.size() ||
      !std::equal(table.begin(), table.begin() + lead, indices.begin())) {
    return site.Error("want a table [..., V, D] and indices [..., B, L] with the same leading ",
                      "dimensions; or a table [V, D], indices [M] and offsets [B], ",
                      site.HaveOperands());
  }
  Shape shape = table;
  shape[lead] = indices[lead];
  return shape;
}

/// The layout of the result: sliced as the bags are, as the columns of the table are, or, over
/// leading dimensions, as table and indices are. If the table is sliced over its rows, each rank
/// sums the rows that it has.
absl::StatusOr<Layout> BagLayout(const Site& site, const BagOperands& operands) {
  const Layout table = ReadLayout(site.type(0)), indices = ReadLayout(site.type(1));
  const int last = static_cast<int>(site.type(0).shape.size()) - 1, bags = last - 1;
  for (size_t i = 1; i < site.operands().size(); ++i) {
    if (ReadLayout(site.type(i)) != indices)
      return site.Error("want indices, offsets and weights of one layout, ", site.HaveOperands());
  }
  if ((table.sliced() && table.dim == Layout::kFlat) ||
      (indices.sliced() && indices.dim == Layout::kFlat))
    return site.Error("an operand sliced flat has no whole rows, ", site.HaveOperands());
  if (indices.sliced() && operands.offsets >= 0) {
    return site.Error("a bag of sliced offsets ends where one on another rank begins, ",
                      site.HaveOperands(), "; use all_gather");
  }
  if (indices.sliced() && indices.dim > bags)
    return site.Error("want whole bags, have indices that are sliced within them, ",
                      site.HaveOperands());
  const bool of_lead = table.sliced() && table.dim < bags;
  if (of_lead && (indices == table || indices == Layout::Replicated())) return table;
  if (table.sliced() && indices != Layout::Replicated()) {
    return site.Error("a sliced table takes indices that are equal on all ranks, or sliced over ",
                      "the same leading dimension, ", site.HaveOperands());
  }
  if (table.sliced()) return table.dim == last ? table : Layout::Local();
  const bool local = table == Layout::Local() || indices == Layout::Local();
  if (!indices.sliced()) return local ? Layout::Local() : Layout::Replicated();
  return indices;
}

}  // namespace

absl::StatusOr<TensorType> InferEmbeddingBag(const Site& site, const EmbeddingBag& op) {
  const DType dtype = site.type(0).dtype;
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16)
    return site.Error("want a table in f32, f16 or bf16, have ", site.Operand(0), "; use cast");
  if (site.type(1).dtype != DType::kI32)
    return site.Error("want i32 indices, have ", site.Operand(1), "; use cast");
  for (size_t i = 0; i < site.operands().size(); ++i) RETURN_IF_ERROR(CheckNotByPlace(site, i));
  ASSIGN_OR_RETURN(const BagOperands operands, BagOperandsOf(site));
  if (operands.weights >= 0 && op.pooling != Pooling::kSum)
    return site.Error("weights go with sum, have ", Name(op.pooling));
  if (operands.weights >= 0 && site.type(operands.weights).shape != site.type(1).shape)
    return site.Error("want weights of the shape of the indices, ", site.HaveOperands());
  ASSIGN_OR_RETURN(Shape shape, BagShape(site, operands));
  if (absl::Status extents = CheckExtents(shape); !extents.ok())
    return site.Error(extents.message());
  ASSIGN_OR_RETURN(const Layout layout, BagLayout(site, operands));
  return Normalized({DType::kF32, std::move(shape), layout});
}

namespace {

/// Each of the indices has an update, or those along the last dimensions have one.
bool HaveUpdates(const Shape& updates, const Shape& indices) {
  if (updates.size() < indices.size()) return false;
  size_t own = indices.size();  // dimensions before those of extent 1
  while (own > 0 && updates[own - 1] == Dim(1)) --own;
  return std::equal(indices.begin(), indices.begin() + own, updates.begin());
}

/// The layout of a scatter's result: of updates that are sliced over a dimension of the indices
/// each rank adds those that it has.
absl::StatusOr<Layout> ScatteredLayout(const Site& site) {
  const Layout updates = ReadLayout(site.type(0)), indices = ReadLayout(site.type(1));
  const int dims = static_cast<int>(site.type(1).shape.size());
  for (size_t i = 2; i < site.operands().size(); ++i) {
    if (ReadLayout(site.type(i)) != indices)
      return site.Error("want indices and weights of one layout, ", site.HaveOperands());
  }
  if ((updates.sliced() && updates.dim == Layout::kFlat) ||
      (indices.sliced() && indices.dim == Layout::kFlat))
    return site.Error("an operand sliced flat has no whole rows, ", site.HaveOperands());
  if (updates.sliced() && updates.dim >= dims) {
    if (indices == Layout::Replicated()) return updates.Over(updates.dim - dims + 1);
    return site.Error("updates that are sliced over columns take indices that are equal on all ",
                      "ranks, ", site.HaveOperands(), "; use all_gather");
  }
  if (updates.sliced() || indices.sliced()) {
    const bool alike =
        updates == indices && site.type(0).shape[updates.dim] == site.type(1).shape[updates.dim];
    if (alike) return Layout::Local();
    return site.Error("want updates and indices that are sliced alike, ", site.HaveOperands(),
                      "; use shard");
  }
  const bool local = updates == Layout::Local() || indices == Layout::Local();
  return local ? Layout::Local() : Layout::Replicated();
}

}  // namespace

absl::StatusOr<TensorType> InferScatterAdd(const Site& site, const ScatterAdd& op) {
  const TensorType &updates = site.type(0), &indices = site.type(1);
  const DType dtype = updates.dtype;
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16)
    return site.Error("want updates in f32, f16 or bf16, have ", site.Operand(0), "; use cast");
  if (indices.dtype != DType::kI32)
    return site.Error("want i32 indices, have ", site.Operand(1), "; use cast");
  for (size_t i = 0; i < site.operands().size(); ++i) RETURN_IF_ERROR(CheckNotByPlace(site, i));
  if (site.operands().size() > 2 && site.type(2).dtype != DType::kF32)
    return site.Error("want weights in f32, have ", site.Operand(2), "; use cast");
  if (site.operands().size() > 2 && site.type(2).shape != indices.shape)
    return site.Error("want weights of the shape of the indices, ", site.HaveOperands());
  const size_t dims = indices.shape.size();
  if (!HaveUpdates(updates.shape, indices.shape) || op.shape.empty() ||
      !std::equal(updates.shape.begin() + dims, updates.shape.end(), op.shape.begin() + 1,
                  op.shape.end())) {
    return site.Error("want updates [I..., D...], the last of I maybe 1, indices [I...] and a ",
                      "shape [V, D...], ", site.HaveOperands(), " for ", Text(op.shape));
  }
  if (absl::Status extents = CheckExtents(op.shape); !extents.ok())
    return site.Error(extents.message());
  ASSIGN_OR_RETURN(const Layout layout, ScatteredLayout(site));
  return Normalized({DType::kF32, op.shape, layout});
}

}  // namespace coconet
