#include "coconet/ir/operand_index.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"

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

IndexMap BroadcastMap(const Shape& from, const Shape& to) {
  const std::vector<int64_t> strides = Strides(to);
  IndexMap map{Extents(from), std::vector<int64_t>(from.size(), 0)};
  const size_t lead = from.size() - to.size();
  for (size_t d = 0; d < to.size(); ++d) map.strides[lead + d] = to[d].size == 1 ? 0 : strides[d];
  return map;
}

}  // namespace

int64_t IndexMap::Of(int64_t index) const {
  int64_t there = offset;
  for (size_t d = extents.size(); d-- > 0; index /= extents[d])
    there += index % extents[d] * strides[d];
  return there;
}

IndexMap Transpose::MapOf(const Shape& result, const Shape& operand) const {
  const std::vector<int64_t> strides = Strides(operand);
  IndexMap map{Extents(result), {}};
  for (int d : order) map.strides.push_back(strides[d]);
  return map;
}

bool Transpose::Moves(const Shape& /*result*/, const Shape& /*operand*/) const {
  return !absl::c_is_sorted(order);
}

IndexMap Reshape::MapOf(const Shape& result, const Shape& /*operand*/) const {
  return {{NumElements(result)}, {1}};
}

bool Reshape::Moves(const Shape& /*result*/, const Shape& /*operand*/) const { return false; }

IndexMap Expand::MapOf(const Shape& result, const Shape& operand) const {
  return BroadcastMap(result, operand);
}

bool Expand::Moves(const Shape& result, const Shape& operand) const {
  return NumElements(result) != NumElements(operand);
}

IndexMap Reverse::MapOf(const Shape& result, const Shape& operand) const {
  IndexMap map{Extents(result), Strides(operand)};
  for (int d : dims) {
    map.offset += (operand[d].size - 1) * map.strides[d];
    map.strides[d] = -map.strides[d];
  }
  return map;
}

bool Reverse::Moves(const Shape& /*result*/, const Shape& operand) const {
  return absl::c_any_of(dims, [&](int d) { return operand[d].size > 1; });
}

IndexMap SubTensor::MapOf(const Shape& result, const Shape& operand) const {
  const std::vector<int64_t> strides = Strides(operand);
  return {Extents(result), strides, begin * strides[dim]};
}

bool SubTensor::Moves(const Shape& result, const Shape& operand) const { return result != operand; }

IndexMap Gather::MapOf(const Shape& result, const Shape& operand) const {
  std::vector<int64_t> strides = Strides(operand);
  strides.erase(strides.begin() + dim);
  const size_t index_dims = result.size() - strides.size();
  strides.insert(strides.begin() + dim, index_dims, 0);
  return {Extents(result), std::move(strides)};
}

bool Gather::Moves(const Shape& /*result*/, const Shape& /*operand*/) const { return true; }

bool MovesElements(const Op& op, const Shape& result, const Shape& operand) {
  const ViewRow& view = RowOf(op).view;
  return TakesOtherPlaces(op) &&
         (view.moves == nullptr || view.moves(StructOf(op), result, operand));
}

IndexMap OperandMap(const Op& op, const Shape& from, const Shape& to) {
  switch (RoleOf(op)) {
    case Role::kView:
      CC_CHECK(RowOf(op).view.map != nullptr);
      return RowOf(op).view.map(StructOf(op), from, to);
    case Role::kElementwise:
    case Role::kTotal:
    case Role::kShard:
    case Role::kCollective:
    case Role::kTransfer:
    case Role::kSend:
    case Role::kStore:
      return BroadcastMap(from, to);
    case Role::kDeclaration:
    case Role::kConstant:
    case Role::kFold:
    case Role::kPooling:
    case Role::kScatter:
    case Role::kProduct:
    case Role::kOpaque:
    case Role::kNone:
      break;
  }
  CC_CHECK(false);  // no element of the result comes from one of the operand
}

std::vector<int64_t> OperandIndices(const Op& op, const Shape& from, const Shape& to,
                                    absl::Span<const int64_t> list) {
  const IndexMap map = OperandMap(op, from, to);
  std::vector<int64_t> indices;
  indices.reserve(list.size());
  for (int64_t index : list) indices.push_back(map.Of(index));
  return indices;
}

int64_t ScatterAdd::IndicesPerUpdate(const Shape& updates, const Shape& indices) {
  int64_t count = 1;
  for (size_t d = indices.size(); d-- > 0 && updates[d].size == 1;) count *= indices[d].size;
  return count;
}

std::vector<JoinedRange> JoinedRanges(const Concat& op, absl::Span<const Shape> operands) {
  std::vector<JoinedRange> ranges;
  int64_t end = 0;
  for (const Shape& shape : operands) {
    const int64_t begin = end;
    end += shape[op.dim].size * SlicingOf(shape, op.dim, 1).inner;
    ranges.push_back({.begin = begin, .end = end});
  }
  for (JoinedRange& range : ranges) range.row = end;
  return ranges;
}

int64_t MatrixOf(const Shape& product, const Shape& operand, int64_t index) {
  int64_t matrix = 0, stride = 1;
  const size_t more = product.size() - operand.size();
  for (size_t d = product.size() - 2; d-- > more;) {
    const int64_t extent = product[d].size;
    if (operand[d - more].size == extent) matrix += index % extent * stride;
    stride *= operand[d - more].size;
    index /= extent;
  }
  return matrix;
}

std::optional<DimRange> OwnMatrixDims(absl::Span<const int64_t> product,
                                      absl::Span<const int64_t> operand) {
  const size_t more = product.size() - operand.size();
  DimRange own;
  bool ended = false;
  for (size_t d = 0; d < product.size(); ++d) {
    if (product[d] == 1) continue;
    const bool has = d >= more && operand[d - more] != 1;
    if (!has) ended = own.end > 0;
    if (!has) continue;
    if (ended) return std::nullopt;
    if (own.end == 0) own.begin = d;
    own.end = d + 1;
  }
  return own;
}

// ---- Scales

namespace {

/// Whether ranks have scales of their own of their slices of the operand.
bool HasSlices(const TensorType& operand, const TensorType& scales) {
  return operand.layout.cut() && scales.layout.sliced();
}

bool CutsAtBlocks(const TensorType& operand, const TensorType& scales, int ranks) {
  const int64_t block = BlocksOf(operand.shape, scales.shape)[operand.layout.dim];
  const Slicing of = SlicingOf(operand, ranks).slicing, by = SlicingOf(scales, ranks).slicing;
  for (int rank = 0; rank < ranks; ++rank) {
    const Range slice = of.Of(rank), own = by.Of(rank);
    const bool fits = slice.size() == 0
                          ? own.size() == 0
                          : slice.begin == own.begin * block && slice.end == own.end * block;
    if (!fits) return false;
  }
  return true;
}

absl::Status CheckSlicesOf(const TypedGraph& program, NodeId id, int ranks) {
  const std::vector<NodeId>& inputs = program.inputs(id);
  for (size_t i = 0; i < 2; ++i) {
    const TensorType &operand = program.type(inputs[i]), &scales = program.type(inputs[i + 2]);
    if (!HasSlices(operand, scales) || CutsAtBlocks(operand, scales, ranks)) continue;
    const auto text = [&](NodeId of) {
      return absl::StrCat(Described(program.graph(), of), " : ", Text(program.type(of)));
    };
    const int dim = operand.layout.dim;
    return absl::InvalidArgumentError(absl::StrCat(
        Described(program.graph(), id), ": want slices that end where blocks of ",
        BlocksOf(operand.shape, scales.shape)[dim], " along dimension ", dim,
        " do, have slices of ", SlicingOf(operand, ranks).slicing.per, " of ", text(inputs[i]),
        ", with scales ", text(inputs[i + 2]), ", on ", ranks, ranks == 1 ? " rank" : " ranks",
        "; use a number of ranks, or an extent, of which each rank has whole blocks"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsScaledProduct(const Graph& g, NodeId id) {
  return As<MatMul>(g, id) != nullptr && g.nodes[id].inputs.size() > 2;
}

bool ScalesFollowRows(const Shape& operand, const Shape& scales) {
  const absl::Span<const Dim> rows(scales.data(), scales.size() - 1);
  return std::equal(rows.begin(), rows.end(), operand.begin()) ||
         absl::c_all_of(rows, [](const Dim& extent) { return extent == Dim(1); });
}

std::vector<int64_t> BlocksOf(const Shape& operand, const Shape& scales) {
  std::vector<int64_t> blocks;
  for (size_t d = 0; d < operand.size(); ++d)
    blocks.push_back(std::max<int64_t>(1, operand[d].size / std::max<int64_t>(1, scales[d].size)));
  return blocks;
}

int64_t ScalesOfMatrix(const Shape& operand, const Shape& scales, int64_t index) {
  const std::vector<int64_t> blocks = BlocksOf(operand, scales);
  int64_t matrix = 0, stride = 1;
  for (size_t d = operand.size() - 2; d-- > 0; index /= operand[d].size) {
    matrix += index % operand[d].size / blocks[d] * stride;
    stride *= scales[d].size;
  }
  return matrix;
}

bool AlwaysCutsAtBlocks(absl::Span<const TensorType> operands) {
  for (size_t i = 0; i < 2; ++i) {
    const TensorType &operand = operands[i], &scales = operands[i + 2];
    const int dim = operand.layout.dim;
    if (HasSlices(operand, scales) && operand.shape[dim] != scales.shape[dim]) return false;
  }
  return true;
}

absl::Status CheckScaleSlices(const Graph& g, int ranks) {
  std::vector<NodeId> products;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (IsScaledProduct(g, id)) products.push_back(id);
  }
  if (products.empty()) return absl::OkStatus();
  const auto check = [&](Graph one) -> absl::Status {
    ASSIGN_OR_RETURN(const TypedGraph program, TypedGraph::Of(std::move(one)));
    for (NodeId id : products) RETURN_IF_ERROR(CheckSlicesOf(program, id, ranks));
    return absl::OkStatus();
  };
  if (g.lists.empty()) return check(g);
  for (int tensor : KindsOf(g).first) {
    RETURN_IF_ERROR(WithContext(check(ProgramOf(g, tensor)), absl::StrCat("tensor ", tensor)));
  }
  return absl::OkStatus();
}

}  // namespace coconet
