#include "coconet/schedule/prologue.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/algorithm/container.h"
#include "coconet/ir/operand_index.h"
#include "coconet/schedule/kernel_phases.h"

namespace coconet {
namespace {

std::vector<int64_t> LeadingExtents(const Shape& shape) {
  std::vector<int64_t> extents;
  for (size_t d = 0; d + 2 < shape.size(); ++d) extents.push_back(shape[d].size);
  return extents;
}

/// Whether `id` is a product of bound extents that a rank computes as one batch: its matrices lie
/// one behind the other, and so do those that each operand has for some neighbouring leading
/// dimensions.
bool IsOneBatch(const TypedGraph& program, NodeId id) {
  const auto* op = As<MatMul>(program.graph(), id);
  if (op == nullptr || !IsBound(program.type(id).shape) || HasNoKernel(program, id)) return false;
  const Layout& layout = program.type(id).layout;
  const std::vector<int64_t> lead = LeadingExtents(program.type(id).shape);
  const auto dim = static_cast<size_t>(layout.dim);
  if (layout.owned() || (layout.sliced() && dim == lead.size())) return false;
  const bool cuts_lead = layout.sliced() && dim < lead.size();
  if (cuts_lead && std::any_of(lead.begin(), lead.begin() + layout.dim,
                               [](int64_t extent) { return extent != 1; }))
    return false;
  return absl::c_all_of(program.inputs(id), [&](NodeId operand) {
    const TensorType& type = program.type(operand);
    const std::vector<int64_t> own_lead = LeadingExtents(type.shape);
    const std::optional<DimRange> own = OwnMatrixDims(lead, own_lead);
    const bool cuts_own =
        type.layout.sliced() && type.layout.dim < static_cast<int>(own_lead.size());
    return own.has_value() && cuts_own == (cuts_lead && dim >= own->begin && dim < own->end);
  });
}

/// Whether a slab of an operand's line has one scale, and either each of its matrices has scales of
/// its own or all share theirs.
bool ScalesSuitTiles(const Shape& of, const Shape& scales) {
  if (!IsBound(of) || !IsBound(scales)) return false;
  const std::vector<int64_t> blocks = BlocksOf(of, scales);
  const size_t lead = of.size() - 2;
  const bool own = std::all_of(blocks.begin(), blocks.begin() + static_cast<int64_t>(lead),
                               [](int64_t block) { return block == 1; }),
             shared = std::all_of(scales.begin(), scales.begin() + static_cast<int64_t>(lead),
                                  [](const Dim& dim) { return dim == Dim(1); });
  return (own || shared) && (blocks.back() % kSlabOfScales == 0 || scales.back().size <= 1);
}

int64_t RowsOf(Shape product) {
  product.pop_back();
  return NumElements(product);
}

}  // namespace

bool IsOfFloats8(const TypedGraph& program, NodeId id) {
  return As<MatMul>(program.graph(), id) != nullptr &&
         IsFloat8(program.type(program.inputs(id)[0]).dtype);
}

bool LiesAlongK(const TypedGraph& program, NodeId id) {
  const auto* op = As<MatMul>(program.graph(), id);
  return op != nullptr && !op->transpose_a && op->transpose_b;
}

bool HasNoKernel(const TypedGraph& program, NodeId id) {
  if (!IsScaledProduct(program.graph(), id)) return false;
  const auto shape = [&](int i) -> const Shape& {
    return program.type(program.inputs(id)[i]).shape;
  };
  return !LiesAlongK(program, id) || !ScalesSuitTiles(shape(0), shape(2)) ||
         !ScalesSuitTiles(shape(1), shape(3));
}

bool IsOneProduct(const TypedGraph& program, NodeId id) {
  const auto* op = As<MatMul>(program.graph(), id);
  if (op == nullptr || !IsBound(program.type(id).shape)) return false;
  const std::vector<NodeId>& inputs = program.inputs(id);
  if (HasNoKernel(program, id)) return false;
  const Shape &a = program.type(inputs[0]).shape, &b = program.type(inputs[1]).shape;
  if (b.size() != 2 || (op->transpose_a && a.size() != 2)) return false;
  if (inputs.size() > 2 && a.size() > 2 && !ScalesFollowRows(a, program.type(inputs[2]).shape))
    return false;
  const Layout& layout = program.type(id).layout;
  if (layout.owned()) return false;
  const bool cuts_columns = layout.dim + 1 == static_cast<int>(a.size());
  return !layout.sliced() || cuts_columns || a.size() == 2;
}

bool IsOfPrologue(const TypedGraph& program, const std::vector<NodeId>& kernel, NodeId id) {
  const Role role = RoleOf(program.op(id));
  if (role != Role::kProduct || !FitsTiles(program, id))
    return role == Role::kScatter || role == Role::kProduct;
  return absl::c_any_of(kernel, [&](NodeId other) {
    return (As<ReduceScatter>(program.graph(), other) || As<AllReduce>(program.graph(), other)) &&
           CrossingValue(program, other, kernel) == id;
  });
}

bool FitsPrologue(const TypedGraph& program, NodeId id) {
  if (As<ScatterAdd>(program.graph(), id) != nullptr) return true;
  return IsOneProduct(program, id) && !IsOfFloats8(program, id) &&
         RowsOf(program.type(id).shape) <= kMostRows;
}

bool FitsTiles(const TypedGraph& program, NodeId id) {
  if (!IsOneProduct(program, id) && !IsOneBatch(program, id)) return false;
  const int64_t rows = RowsOf(program.type(id).shape);
  // Kernels compute 8-bit floats in tiles only.
  return !program.type(id).layout.by_place() &&
         (IsOfFloats8(program, id) ? rows > 0 && LiesAlongK(program, id) : rows > kMostRows);
}

NodeId TiledProductOf(const TypedGraph& program, const std::vector<NodeId>& kernel) {
  const auto tiled = absl::c_find_if(kernel, [&](NodeId id) { return FitsTiles(program, id); });
  return tiled == kernel.end() ? -1 : *tiled;
}

std::vector<NodeId> PrologueOf(const TypedGraph& program, const std::vector<NodeId>& kernel) {
  std::vector<NodeId> prologue;
  absl::c_copy_if(kernel, std::back_inserter(prologue),
                  [&](NodeId id) { return IsOfPrologue(program, kernel, id); });
  return prologue;
}

std::vector<NodeId> WithoutPrologue(const TypedGraph& program, const std::vector<NodeId>& kernel) {
  std::vector<NodeId> others;
  absl::c_copy_if(kernel, std::back_inserter(others),
                  [&](NodeId id) { return !IsOfPrologue(program, kernel, id); });
  return others;
}

}  // namespace coconet
