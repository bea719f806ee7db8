#include "coconet/ir/operand_index.h"

#include "absl/algorithm/container.h"

namespace coconet {
namespace {

std::vector<int64_t> Extents(const Shape& shape) {
  std::vector<int64_t> extents;
  for (const Dim& dim : shape) extents.push_back(dim.size);
  return extents;
}

std::vector<int64_t> Strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d].size) strides[d] = stride;
  return strides;
}

}  // namespace

bool IsView(const Op& op) {
  return std::holds_alternative<Transpose>(op) || std::holds_alternative<Reshape>(op) ||
         std::holds_alternative<SubTensor>(op);
}

int64_t IndexMap::Of(int64_t index) const {
  int64_t there = offset;
  for (size_t d = extents.size(); d-- > 0; index /= extents[d])
    there += index % extents[d] * strides[d];
  return there;
}

bool MovesElements(const Op& op, const Shape& result, const Shape& operand) {
  if (const auto* transpose = std::get_if<Transpose>(&op))
    return !absl::c_is_sorted(transpose->order);
  return std::holds_alternative<SubTensor>(op) && result != operand;
}

IndexMap OperandMap(const Op& op, const Shape& from, const Shape& to) {
  const std::vector<int64_t> strides = Strides(to);
  if (const auto* transpose = std::get_if<Transpose>(&op)) {
    IndexMap map{Extents(from), {}};
    for (int d : transpose->order) map.strides.push_back(strides[d]);
    return map;
  }
  if (std::holds_alternative<Reshape>(op)) return {{NumElements(from)}, {1}};
  if (const auto* sub = std::get_if<SubTensor>(&op))
    return {Extents(from), strides, sub->begin * strides[sub->dim]};
  IndexMap map{Extents(from), std::vector<int64_t>(from.size(), 0)};
  const size_t lead = from.size() - to.size();
  for (size_t d = 0; d < to.size(); ++d) map.strides[lead + d] = to[d].size == 1 ? 0 : strides[d];
  return map;
}

std::vector<int64_t> OperandIndices(const Op& op, const Shape& from, const Shape& to,
                                    absl::Span<const int64_t> list) {
  const IndexMap map = OperandMap(op, from, to);
  std::vector<int64_t> indices;
  indices.reserve(list.size());
  for (int64_t index : list) indices.push_back(map.Of(index));
  return indices;
}

}  // namespace coconet
