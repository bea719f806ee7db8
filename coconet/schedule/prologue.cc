#include "coconet/schedule/prologue.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "coconet/schedule/kernel_phases.h"

namespace coconet {
namespace {

/// Whether `id` is a product of bound extents, of no 8-bit floats, whose matrices on each rank are
/// one batch: they follow each other, and each operand has one for each index of some neighbouring
/// dimensions.
bool IsOneBatch(const TypedGraph& program, NodeId id) {
  const auto* op = As<MatMul>(program.graph(), id);
  if (op == nullptr || !IsBound(program.type(id).shape) ||
      IsFloat8(program.type(program.inputs(id)[0]).dtype))
    return false;
  const Shape& shape = program.type(id).shape;
  const Layout& layout = program.type(id).layout;
  const int lead = static_cast<int>(shape.size()) - 2;
  if (layout.owned() || (layout.sliced() && layout.dim == lead)) return false;
  const bool cuts_lead = layout.sliced() && layout.dim < lead;
  for (int d = 0; cuts_lead && d < layout.dim; ++d) {
    if (shape[d].size != 1) return false;
  }
  return absl::c_all_of(program.inputs(id), [&](NodeId operand) {
    const TensorType& type = program.type(operand);
    const int own = static_cast<int>(type.shape.size()) - 2;
    int runs = 0;
    bool before = false, has_cut = false;
    for (int d = 0; d < lead; ++d) {
      if (shape[d].size == 1) continue;
      const bool has = d >= lead - own && type.shape[d - (lead - own)].size != 1;
      runs += has && !before;
      before = has;
      has_cut = has_cut || (has && cuts_lead && d == layout.dim);
    }
    const bool cuts_own = type.layout.sliced() && type.layout.dim < own;
    return runs <= 1 && cuts_own == has_cut;
  });
}

int64_t RowsOf(Shape product) {
  product.pop_back();
  return NumElements(product);
}

}  // namespace

bool IsOneProduct(const TypedGraph& program, NodeId id) {
  const auto* op = As<MatMul>(program.graph(), id);
  if (op == nullptr || !IsBound(program.type(id).shape)) return false;
  const std::vector<NodeId>& inputs = program.inputs(id);
  if (IsFloat8(program.type(inputs[0]).dtype)) return false;
  const Shape &a = program.type(inputs[0]).shape, &b = program.type(inputs[1]).shape;
  if (b.size() != 2 || (op->transpose_a && a.size() != 2)) return false;
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
  return IsOneProduct(program, id) && RowsOf(program.type(id).shape) <= kMostRows;
}

bool FitsTiles(const TypedGraph& program, NodeId id) {
  return (IsOneProduct(program, id) || IsOneBatch(program, id)) &&
         !program.type(id).layout.by_place() && RowsOf(program.type(id).shape) > kMostRows;
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
