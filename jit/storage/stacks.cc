#include "jit/storage/stacks.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "coconet/ir/operand_index.h"

namespace coconet {

MatrixStack StackOf(const TensorType& type, int ranks) {
  MatrixStack s;
  const int dims = static_cast<int>(type.shape.size());
  for (int d = 0; d < dims; ++d) {
    const int64_t extent = type.shape[d].size;
    const bool sliced = type.layout.cut() && type.layout.dim == d;
    const Slicing cut = sliced ? SlicingOf(type, ranks).slicing : Slicing{};
    const int64_t stored = sliced ? cut.per : extent;
    if (d == dims - 2) s.rows = {extent, cut.per, cut.shift}, s.rows_stored = stored;
    if (d == dims - 1) s.columns = {extent, cut.per, cut.shift}, s.columns_stored = stored;
    if (d >= dims - 2) continue;
    if (sliced) s.sliced_lead = d, s.lead_cut = cut;
    s.lead.push_back(extent);
    s.lead_stored.push_back(stored);
  }
  return s;
}

int64_t CountOf(const std::vector<int64_t>& values, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i) product *= values[i];
  return product;
}

bool FoldLead(MatrixStack& s) {
  const int64_t lead = CountOf(s.lead_stored, 0, s.lead_stored.size());
  if (lead == 1 && s.sliced_lead < 0) return true;
  const bool rows_sliced = s.rows.per > 0;
  if (rows_sliced || s.sliced_lead > 0) return false;
  if (s.sliced_lead == 0) {
    const int64_t inner = CountOf(s.lead, 1, s.lead.size()) * s.rows.total;
    s.rows = {s.lead[0] * inner, s.lead_stored[0] * inner, s.lead_cut.shift * inner};
  } else {
    s.rows.total *= lead;
  }
  s.rows_stored *= lead;
  s.lead.clear();
  s.lead_stored.clear();
  s.sliced_lead = -1;
  return true;
}

ScaleStack ScalesOf(const TypedGraph& program, NodeId operand, NodeId scales, int ranks) {
  ScaleStack of{.id = scales, .s = StackOf(program.type(scales), ranks)};
  of.lead_blocks = BlocksOf(program.type(operand).shape, program.type(scales).shape);
  of.block_columns = of.lead_blocks.back();
  of.lead_blocks.pop_back();
  of.block_rows = of.lead_blocks.back();
  of.lead_blocks.pop_back();
  return of;
}

bool FoldLead(ScaleStack& scales, const MatrixStack& s) {
  std::vector<int64_t> blocks = scales.lead_blocks, counts = scales.s.lead, extents = s.lead;
  blocks.push_back(scales.block_rows);
  counts.push_back(scales.s.rows.total);
  extents.push_back(s.rows.total);
  const size_t shared =
      absl::c_find_if(blocks, [](int64_t block) { return block != 1; }) - blocks.begin();
  if (shared == blocks.size()) {
    scales.block_rows = 1;
  } else {
    if (CountOf(counts, shared + 1, counts.size()) != 1) return false;
    scales.block_rows = blocks[shared] * CountOf(extents, shared + 1, extents.size());
  }
  scales.s.rows_stored *= CountOf(scales.s.lead_stored, 0, scales.s.lead_stored.size());
  scales.s.lead.clear();
  scales.s.lead_stored.clear();
  scales.lead_blocks.clear();
  return true;
}

TakenMatrices::TakenMatrices(const MatrixStack& s, const MatrixStack& operand,
                             const std::vector<int64_t>& blocks, const MatrixStack& product)
    : s_(s),
      extents_(product.lead_stored),
      strides_(product.lead.size()),
      blocks_(product.lead.size(), 1) {
  const size_t more = product.lead.size() - s.lead.size();
  int64_t stride = 1;
  for (size_t d = product.lead.size(); d-- > more;) {
    if (operand.lead[d - more] == product.lead[d] && s.lead[d - more] != 1) strides_[d] = stride;
    blocks_[d] = blocks[d - more];
    stride *= s.lead_stored[d - more];
  }
}

bool TakenMatrices::AreBatch(size_t cut) const {
  std::optional<int64_t> next;
  for (size_t d = extents_.size(); d-- > cut;) {
    if (extents_[d] == 1) continue;
    if (strides_[d] != 0 && blocks_[d] != 1) return false;
    if (next.value_or(strides_[d]) != strides_[d]) return false;
    next = strides_[d] * extents_[d];
  }
  return true;
}

std::optional<GemmBatch::Taken> TakenMatrices::InBatch(const MatrixStack& product) const {
  const std::optional<DimRange> own = OwnMatrixDims(product.lead, s_.lead);
  if (!own.has_value()) return std::nullopt;
  const auto sliced = static_cast<size_t>(product.sliced_lead);
  GemmBatch::Taken taken{.each = CountOf(product.lead_stored, own->end, product.lead_stored.size()),
                         .count = {CountOf(product.lead, own->begin, own->end)}};
  if (product.sliced_lead >= 0 && sliced >= own->begin && sliced < own->end) {
    const int64_t inner = CountOf(product.lead, sliced + 1, own->end);
    taken.count.per = inner * product.lead_cut.per;
    taken.count.shift = inner * product.lead_cut.shift;
  }
  return taken;
}

GemmStep::Matrix TakenMatrices::At(int buffer, int64_t index, size_t cut) const {
  GemmStep::Matrix matrix{buffer, 0, std::max<int64_t>(1, s_.columns_stored), 0};
  for (size_t d = cut; d-- > 0; index /= extents_[d])
    matrix.offset += index % extents_[d] / blocks_[d] * strides_[d] * s_.matrix();
  for (size_t d = extents_.size(); d-- > cut && matrix.batch_stride == 0;)
    matrix.batch_stride = extents_[d] == 1 ? 0 : strides_[d] * s_.matrix();
  return matrix;
}

GemmStep::Scales ScalesAt(const ScaleStack& scales, const TakenMatrices& matrices,
                          const BufferTable& table, int64_t index, size_t cut) {
  const GemmStep::Matrix all = matrices.At(table.of[scales.id], index, cut);
  return {.buffer = all.buffer,
          .offset = all.offset,
          .ld = all.ld,
          .batch_stride = all.batch_stride,
          .block_rows = scales.block_rows,
          .block_columns = scales.block_columns};
}

}  // namespace coconet
