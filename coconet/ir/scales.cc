#include "coconet/ir/scales.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"

namespace coconet {
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
