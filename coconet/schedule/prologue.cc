#include "coconet/schedule/prologue.h"

#include <algorithm>
#include <iterator>

namespace coconet {

bool IsOfPrologue(const Graph& g, NodeId id) {
  const Role role = RoleOf(g.nodes[id].op);
  return role == Role::kProduct || role == Role::kScatter;
}

bool FitsPrologue(const TypedGraph& program, NodeId id) {
  if (As<ScatterAdd>(program.graph(), id) != nullptr) return true;
  const auto* op = As<MatMul>(program.graph(), id);
  if (op == nullptr || !IsBound(program.type(id).shape)) return false;
  const std::vector<NodeId>& inputs = program.inputs(id);
  const Shape &a = program.type(inputs[0]).shape, &b = program.type(inputs[1]).shape;
  if (b.size() != 2 || (op->transpose_a && a.size() != 2)) return false;
  const Layout& layout = program.type(id).layout;
  if (layout.owned()) return false;
  const bool cuts_columns = layout.dim + 1 == static_cast<int>(a.size());
  if (layout.sliced() && !cuts_columns && a.size() != 2) return false;
  Shape rows = program.type(id).shape;
  rows.pop_back();
  return NumElements(rows) <= kMostRows;
}

std::vector<NodeId> PrologueOf(const Graph& g, const std::vector<NodeId>& kernel) {
  std::vector<NodeId> prologue;
  std::copy_if(kernel.begin(), kernel.end(), std::back_inserter(prologue),
               [&](NodeId id) { return IsOfPrologue(g, id); });
  return prologue;
}

std::vector<NodeId> WithoutPrologue(const Graph& g, const std::vector<NodeId>& kernel) {
  std::vector<NodeId> others;
  std::copy_if(kernel.begin(), kernel.end(), std::back_inserter(others),
               [&](NodeId id) { return !IsOfPrologue(g, id); });
  return others;
}

}  // namespace coconet
