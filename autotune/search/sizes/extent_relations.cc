#include "autotune/search/sizes/extent_relations.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "coconet/ir/op_table.h"
#include "coconet/ir/operand_index.h"

namespace coconet {
namespace {

/// Extents, without those that both shapes have, and without 1.
Relation RelationOf(const Shape& from, const Shape& to) {
  Relation relation{.is_product = true};
  for (const Dim& dim : to) relation.right.push_back(dim.size);
  for (const Dim& dim : from) {
    const auto same = absl::c_find(relation.right, dim.size);
    if (same != relation.right.end())
      relation.right.erase(same);
    else
      relation.left.push_back(dim.size);
  }
  std::erase(relation.left, 1);
  std::erase(relation.right, 1);
  absl::c_sort(relation.left);
  absl::c_sort(relation.right);
  if (relation.right < relation.left) relation.left.swap(relation.right);
  return relation;
}

/// How operations relate the extents of a program. `types` are its types.
std::set<Relation> RelationsOf(const Graph& program, const std::vector<TensorType>& types) {
  std::set<Relation> relations;
  for (NodeId id = 0; id < program.size(); ++id) {
    const Node& node = program.nodes[id];
    const Shape& to = types[id].shape;
    const auto are_bound = [&] {
      return IsBound(to) &&
             absl::c_all_of(node.inputs, [&](NodeId input) { return IsBound(types[input].shape); });
    };
    if (std::holds_alternative<Reshape>(node.op) && are_bound()) {
      const Relation relation = RelationOf(types[node.inputs[0]].shape, to);
      if (!relation.left.empty() || !relation.right.empty()) relations.insert(relation);
    }
    if (IsScaledProduct(program, id) && are_bound()) {
      for (size_t i : {0, 1}) {
        const Shape &of = types[node.inputs[i]].shape, &by = types[node.inputs[i + 2]].shape;
        const std::vector<int64_t> blocks = BlocksOf(of, by);
        for (size_t d = 0; d < of.size(); ++d) {
          if (blocks[d] == 1 || by[d].size <= 1) continue;
          const Layout& layout = types[node.inputs[i + 2]].layout;
          relations.insert({.is_product = true,
                            .left = {by[d].size, blocks[d]},
                            .right = {of[d].size},
                            .keeps = blocks[d],
                            .of_slices = layout.cut() && layout.dim == static_cast<int>(d)});
        }
      }
    }
    if (const auto* range = std::get_if<SubTensor>(&node.op); range != nullptr && are_bound()) {
      const int64_t extent = types[node.inputs[0]].shape[range->dim].size;
      if (range->begin == 0 && range->end == extent) continue;
      relations.insert({false, {range->begin, range->end - range->begin}, {range->end}});
      relations.insert({false, {range->end, extent - range->end}, {extent}});
    }
    if (const auto* concat = std::get_if<Concat>(&node.op); concat != nullptr && are_bound()) {
      Relation relation{.right = {to[concat->dim].size}};
      for (NodeId input : node.inputs)
        relation.left.push_back(types[input].shape[concat->dim].size);
      absl::c_sort(relation.left);
      relations.insert(std::move(relation));
    }
  }
  return relations;
}

}  // namespace

std::set<Relation> RelationsOf(const Graph& program, size_t tensors) {
  const absl::StatusOr<std::vector<TensorType>> types = InferTypes(program);
  if (!types.ok()) return {};
  std::set<Relation> relations = RelationsOf(program, *types);
  const auto is_scaled = [&](const Node& node) {
    return IsScaledProduct(program, static_cast<NodeId>(&node - program.nodes.data()));
  };
  if (program.lists.empty() || absl::c_none_of(program.nodes, is_scaled)) return relations;
  const TensorKinds kinds = KindsOf(program);
  for (size_t k = 0; k < kinds.first.size() && k < tensors; ++k)
    relations.merge(RelationsOf(ProgramOf(program, kinds.first[k]), tensors));
  return relations;
}

}  // namespace coconet
