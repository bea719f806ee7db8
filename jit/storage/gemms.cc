#include "jit/storage/gemms.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "coconet/ir/operand_index.h"
#include "jit/storage/stacks.h"

namespace coconet {
namespace {

/// The part [begin, end) of each rank's part of an extent.
RankExtent PartOf(const RankExtent& extent, int64_t begin, int64_t end) {
  const int64_t size = end - begin, full = extent.total / extent.per;  // ranks that have `per`
  const int64_t rest = std::clamp<int64_t>(extent.total - full * extent.per - begin, 0, size);
  return {full * size + rest, size};
}

/// Makes element (row, column), as stored, the first one.
void Skip(GemmStep::Matrix& matrix, int64_t row, int64_t column) {
  matrix.offset += row * matrix.ld + column;
  GemmStep::Scales& s = matrix.scales;
  if (s.buffer < 0) return;
  s.first_row += row;
  s.first_column += column;
  s.offset += s.first_row / s.block_rows * s.ld + s.first_column / s.block_columns;
  s.first_row %= s.block_rows;
  s.first_column %= s.block_columns;
}

/// Makes row `rows` the first one.
void Advance(GemmStep& step, int64_t rows) {
  step.transpose_a ? Skip(step.a, 0, rows) : Skip(step.a, rows, 0);
  Skip(step.c, rows, 0);
  if (step.rows.counts >= 0) step.rows.first += rows;
}

/// Rows [begin, end) of each rank's slice of a product's rows.
GemmStep RowsOfSlice(GemmStep part, int64_t begin, int64_t end) {
  part.m = PartOf(part.m, begin, end);
  Advance(part, begin);
  return part;
}

/// Some rows of a product.
std::vector<GemmStep> RowsOf(const GemmStep& all, const std::vector<Range>& ranges) {
  std::vector<GemmStep> gemms;
  for (const Range& rows : ranges) {
    GemmStep& part = gemms.emplace_back(all);
    part.m = {rows.size(), 0};
    Advance(part, rows.begin);
  }
  return gemms;
}

/// Columns [begin, end) of a product.
void TakeColumns(GemmStep& step, int64_t begin, int64_t end) {
  step.n = {end - begin};
  step.transpose_b ? Skip(step.b, begin, 0) : Skip(step.b, 0, begin);
  Skip(step.c, 0, begin);
}

/// Rows of a product per index of dimension `dim`, before which all extents are 1.
int64_t RowsPerIndex(const Shape& shape, int dim) {
  return NumElements({shape.begin() + dim + 1, shape.end() - 1});
}

/// What the steps of a product have in common, and how its matrices lie.
struct Product {
  GemmStep step;
  MatrixStack a, b, c;
  NodeId in[2];
  ScaleStack scales_a, scales_b;

  bool scaled() const { return scales_a.id >= 0; }
};

std::optional<DType> Float8Of(const PlacedLaunches& u, NodeId id) {
  const DType dtype = u.program.types()[id].dtype;
  return IsFloat8(dtype) ? std::optional(dtype) : std::nullopt;
}

/// Makes one matrix of several, where `may_fold`, they lie one after the other, and they share b.
void FoldProduct(Product& p, bool may_fold) {
  MatrixStack& b = p.b;
  if (b.sliced_lead < 0 && CountOf(b.lead, 0, b.lead.size()) == 1) {
    for (MatrixStack* lone : {&b, &p.scales_b.s}) lone->lead.clear(), lone->lead_stored.clear();
    p.scales_b.lead_blocks.clear();
  }
  MatrixStack a = p.a, c = p.c;
  if (!may_fold || !b.lead.empty() || !FoldLead(a) || !FoldLead(c)) return;
  const bool folds_scales = p.scaled() && a.lead.size() < p.a.lead.size();
  if (folds_scales && !FoldLead(p.scales_a, p.a)) return;
  p.a = std::move(a), p.c = std::move(c);
}

/// `folds`: makes one matrix of several where they lie one after the other and share b.
Product ProductOf(const PlacedLaunches& u, NodeId id, const BufferTable& table, int ranks,
                  bool folds) {
  const Graph& g = u.graph();
  const auto& op = *As<MatMul>(g, id);
  Product p;
  p.in[0] = u.Value(g.nodes[id].inputs[0]), p.in[1] = u.Value(g.nodes[id].inputs[1]);
  p.a = StackOf(u.program.types()[p.in[0]], ranks);
  p.b = StackOf(u.program.types()[p.in[1]], ranks);
  p.c = StackOf(u.type(id), ranks);
  if (IsScaledProduct(g, id)) {
    p.scales_a = ScalesOf(u.program, p.in[0], u.Value(g.nodes[id].inputs[2]), ranks);
    p.scales_b = ScalesOf(u.program, p.in[1], u.Value(g.nodes[id].inputs[3]), ranks);
  }
  FoldProduct(p, folds && !op.transpose_a);
  const MatrixStack &a = p.a, &b = p.b;
  GemmStep& step = p.step;
  step.dtype = u.type(id).dtype;
  step.m = op.transpose_a ? a.columns : a.rows;
  step.k = op.transpose_a ? a.rows : a.columns;
  step.n = op.transpose_b ? b.rows : b.columns;
  if (const Layout& layout = u.type(id).layout; layout.owned()) {
    const Slicing rows = SliceWhole(step.m.total, ranks, layout.turn.RankOf(ranks));
    step.m = {rows.extent, rows.per, rows.shift};
  }
  step.transpose_a = op.transpose_a;
  step.transpose_b = op.transpose_b;
  step.label = "MM";
  const RowsInUse in_use = u.RowsOfProduct(id, u.of[id]);
  const int64_t capacity = u.type(id).shape[u.type(id).shape.size() - 2].size;
  if (!in_use.all() && capacity > 0 && !p.scaled())
    step.rows = {.counts = table.of[in_use.counts], .capacity = capacity};
  return p;
}

}  // namespace

std::vector<GemmStep> GemmsOf(const PlacedLaunches& u, NodeId id, const BufferTable& table,
                              int ranks, int candidate, const Piece* piece) {
  Product p = ProductOf(u, id, table, ranks, /*folds=*/true);
  GemmStep& step = p.step;
  step.candidate = candidate;
  const MatrixStack& c = p.c;
  const TakenMatrices of_a(p.a, c), of_b(p.b, c), of_c(c, c);
  const bool scaled = p.scaled();
  const TakenMatrices of_scales[] = {scaled ? TakenMatrices(p.scales_a, p.a, c) : of_a,
                                     scaled ? TakenMatrices(p.scales_b, p.b, c) : of_b};
  const auto take = [&](int64_t i, size_t cut) {
    step.a = of_a.At(table.of[p.in[0]], i, cut);
    step.b = of_b.At(table.of[p.in[1]], i, cut);
    step.a.float8 = Float8Of(u, p.in[0]), step.b.float8 = Float8Of(u, p.in[1]);
    if (scaled) {
      step.a.scales = ScalesAt(p.scales_a, of_scales[0], table, i, cut);
      step.b.scales = ScalesAt(p.scales_b, of_scales[1], table, i, cut);
    }
    step.c = of_c.At(table.of[id], i, cut);
  };
  // Chunks of the dimension that matrices lie along, one after the other; else of rows.
  const bool of_matrices =
      piece != nullptr && piece->lead && piece->dim < static_cast<int>(c.lead.size());
  const bool of_columns = piece != nullptr && piece->columns;
  if (piece != nullptr && !of_matrices && !of_columns) {
    take(0, c.lead.size());
    const int64_t rows = piece->lead ? RowsPerIndex(u.type(id).shape, piece->dim) : 1;
    if (piece->lead && step.m.per > 0)
      return {RowsOfSlice(step, piece->begin * rows, piece->end * rows)};
    std::vector<Range> ranges = piece->Whole(ranks);
    for (Range& range : ranges) range = {range.begin * rows, range.end * rows};
    return RowsOf(step, ranges);
  }
  // Leading dimensions up to the sliced one give a step per matrix, those after it a batch.
  size_t cut = static_cast<size_t>(c.sliced_lead + 1);
  if (of_matrices) cut = std::max(cut, static_cast<size_t>(piece->dim + 1));
  while (!of_a.AreBatch(cut) || !of_b.AreBatch(cut) || !of_scales[0].AreBatch(cut) ||
         !of_scales[1].AreBatch(cut))
    ++cut;
  const int64_t steps = CountOf(c.lead_stored, 0, cut);
  step.batch = CountOf(c.lead_stored, cut, c.lead_stored.size());
  std::vector<GemmStep> gemms;
  for (int64_t i = 0; i < steps; ++i) {
    if (of_matrices) {
      const int64_t index = i / CountOf(c.lead_stored, piece->dim + 1, cut);
      const int64_t at = piece->slices ? index % piece->per : index;
      if (at < piece->begin || at >= piece->end) continue;
    }
    take(i, cut);
    step.rows.first = i * step.batch * step.rows.capacity;
    if (c.sliced_lead >= 0) {
      // Neighbouring ranks have a matrix j in their part.
      const int64_t j = i / CountOf(c.lead_stored, c.sliced_lead + 1, cut) %
                        c.lead_stored[c.sliced_lead],
                    rows = step.m.per > 0 ? step.m.per : step.m.total;
      int64_t having = 0, first = 0;
      for (int64_t rank = ranks - 1; rank >= 0; --rank) {
        if (c.lead_cut.Of(rank).size() > j) ++having, first = rank;
      }
      GemmStep part = step;
      part.m = {having * rows, rows, first * rows};
      gemms.push_back(std::move(part));
    } else {
      gemms.push_back(step);
    }
    if (of_columns) TakeColumns(gemms.back(), piece->begin, piece->end);
  }
  return gemms;
}

std::optional<GemmBatch> BatchOf(const PlacedLaunches& u, NodeId id, const BufferTable& table,
                                 int ranks) {
  // Each of several matrices has rows in use of its own.
  Product p = ProductOf(u, id, table, ranks, /*folds=*/u.RowsOfProduct(id, u.of[id]).all());
  GemmBatch all{.gemm = std::move(p.step)};
  GemmStep& step = all.gemm;
  const TakenMatrices of_a(p.a, p.c), of_b(p.b, p.c), of_c(p.c, p.c);
  const std::optional<GemmBatch::Taken> a = of_a.InBatch(p.c), b = of_b.InBatch(p.c),
                                        c = of_c.InBatch(p.c);
  const bool sliced = p.c.sliced_lead >= 0;
  if (!a.has_value() || !b.has_value() || (c->count.total > 1 && step.m.per > 0) ||
      (sliced && CountOf(p.c.lead, 0, static_cast<size_t>(p.c.sliced_lead)) != 1))
    return std::nullopt;
  const auto matrix = [&](NodeId value, const MatrixStack& s, const GemmBatch::Taken& taken) {
    const bool shared = taken.count == RankExtent{1};
    return GemmStep::Matrix{table.of[value], 0, std::max<int64_t>(1, s.columns_stored),
                            shared ? 0 : s.matrix(), Float8Of(u, value)};
  };
  step.a = matrix(p.in[0], p.a, *a);
  step.b = matrix(p.in[1], p.b, *b);
  const auto scales = [&](const ScaleStack& of) {
    const bool shared = CountOf(of.s.lead_stored, 0, of.s.lead_stored.size()) == 1;
    return GemmStep::Scales{.buffer = table.of[of.id],
                            .ld = std::max<int64_t>(1, of.s.columns_stored),
                            .batch_stride = shared ? 0 : of.s.matrix(),
                            .block_rows = of.block_rows,
                            .block_columns = of.block_columns};
  };
  if (p.scaled()) step.a.scales = scales(p.scales_a), step.b.scales = scales(p.scales_b);
  step.c = matrix(id, p.c, *c);
  step.batch = CountOf(p.c.lead_stored, 0, p.c.lead_stored.size());
  all.matrices = c->count, all.of_a = *a, all.of_b = *b;
  return all;
}

int64_t GemmBytes(const GemmStep& s) {
  const auto bytes = [&](const GemmStep::Matrix& matrix, int64_t rows, int64_t columns) {
    const GemmStep::Scales& by = matrix.scales;
    const int64_t scales = by.buffer < 0
                               ? 0
                               : (rows + by.block_rows - 1) / by.block_rows *
                                     ((columns + by.block_columns - 1) / by.block_columns);
    return rows * columns * static_cast<int64_t>(SizeOf(s.TypeOf(matrix))) +
           scales * static_cast<int64_t>(sizeof(float));
  };
  const int64_t m = s.m.Most(), n = s.n.Most(), k = s.k.Most();
  return s.batch * (bytes(s.a, s.transpose_a ? k : m, s.transpose_a ? m : k) +
                    bytes(s.b, s.transpose_b ? n : k, s.transpose_b ? k : n) + bytes(s.c, m, n));
}

}  // namespace coconet
