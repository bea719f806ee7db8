#include "runtime/node/gemm_problem.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

// Tile of the matrix library: a part takes the time of the next multiple.
constexpr int64_t kTileRows = 16, kTileCols = 64;
constexpr int kMostThreads = 1024;

absl::Status Bad(const GemmStep& step, absl::string_view want, absl::string_view have) {
  return absl::InvalidArgumentError(
      absl::StrCat("Bind: ", step.label, ": want ", want, ", have ", have));
}

/// One of the three matrices as stored, on the rank with the largest part, or scales.
struct StoredMatrix {
  absl::string_view name;
  GemmStep::Matrix matrix;
  int64_t rows, cols;
};

/// Elements from the first to the last one used. 128 bits, because sums and products may exceed 64.
absl::int128 Span(const StoredMatrix& s, int64_t batch) {
  if (batch == 0 || s.rows == 0 || s.cols == 0) return 0;
  return absl::int128(batch - 1) * s.matrix.batch_stride + absl::int128(s.rows - 1) * s.matrix.ld +
         s.cols;
}

std::string Text(absl::int128 number) {
  const bool fits = number <= std::numeric_limits<int64_t>::max();
  return fits ? absl::StrCat(static_cast<int64_t>(number)) : "2^63 or more";
}

absl::Status CheckMatrix(const GemmStep& step, const StoredMatrix& s,
                         absl::Span<const Buffer> buffers) {
  const GemmStep::Matrix& matrix = s.matrix;
  const absl::string_view name = s.name;
  if (matrix.buffer < 0 || matrix.buffer >= static_cast<int>(buffers.size())) {
    return Bad(step, absl::StrCat("a buffer of the plan as ", name),
               absl::StrCat("%", matrix.buffer));
  }
  const Buffer& buffer = buffers[matrix.buffer];
  if (buffer.dtype != step.TypeOf(matrix) || buffer.role == BufferRole::kSync) {
    return Bad(step, absl::StrCat("a buffer of ", Name(step.TypeOf(matrix)), " as ", name),
               buffer.role == BufferRole::kSync ? "one of flags" : Name(buffer.dtype));
  }
  if (matrix.offset < 0 || matrix.batch_stride < 0) {
    return Bad(step, absl::StrCat("no negative offset or stride of ", name),
               absl::StrCat(matrix.offset, " and ", matrix.batch_stride));
  }
  if (matrix.ld < std::max<int64_t>(s.cols, 1)) {
    return Bad(step,
               absl::StrCat("rows of ", name, " at least ", std::max<int64_t>(s.cols, 1), " apart"),
               absl::StrCat(matrix.ld));
  }
  const absl::int128 span = Span(s, step.batch), end = matrix.offset + span;
  if (span > 0 && end > buffer.elements) {  // an empty matrix fits everywhere
    return Bad(step, absl::StrCat(Text(end), " elements in %", matrix.buffer, " for ", name),
               absl::StrCat(buffer.elements));
  }
  return absl::OkStatus();
}

/// OK when the batches of c are consecutive or side by side in each row.
absl::Status CheckBatchesApart(const GemmStep& step, const StoredMatrix& c) {
  if (step.batch <= 1 || c.rows == 0 || c.cols == 0) return absl::OkStatus();
  const absl::int128 stride = c.matrix.batch_stride;
  const bool one_after_another = stride >= Span(c, 1);
  const bool side_by_side = stride >= c.cols && (step.batch - 1) * stride + c.cols <= c.matrix.ld;
  if (one_after_another || side_by_side) return absl::OkStatus();
  return Bad(step, "batches of c that do not overlap",
             absl::StrCat("a batch stride of ", c.matrix.batch_stride));
}

absl::Status CheckApart(const GemmStep& step, const StoredMatrix& c, const StoredMatrix& in) {
  const auto begin = [](const StoredMatrix& s) { return absl::int128(s.matrix.offset); };
  const auto end = [&](const StoredMatrix& s) { return s.matrix.offset + Span(s, step.batch); };
  if (c.matrix.buffer != in.matrix.buffer || end(c) <= begin(in) || end(in) <= begin(c))
    return absl::OkStatus();
  return Bad(step, absl::StrCat("c apart from ", in.name),
             absl::StrCat("both in the same part of %", c.matrix.buffer));
}

/// The scales of a matrix.
StoredMatrix ScalesOf(const StoredMatrix& of, absl::string_view name) {
  const GemmStep::Scales& s = of.matrix.scales;
  const auto count = [](int64_t first, int64_t extent, int64_t block) {
    return extent == 0 ? 0 : (first + extent - 1) / block + 1;
  };
  return {name,
          {s.buffer, s.offset, s.ld, s.batch_stride},
          count(s.first_row, of.rows, s.block_rows),
          count(s.first_column, of.cols, s.block_columns)};
}

/// OK unless scales are of one operand only, of others than 8-bit floats, of no blocks, or beside
/// rows in use.
absl::Status CheckScales(const GemmStep& step) {
  if (!step.scaled()) return absl::OkStatus();
  for (const GemmStep::Matrix* matrix : {&step.a, &step.b}) {
    const GemmStep::Scales& s = matrix->scales;
    if (s.buffer < 0 || !matrix->float8.has_value())
      return Bad(step, "scales of two operands of 8-bit floats", "others");
    if (s.block_rows < 1 || s.block_columns < 1 || s.first_row < 0 || s.first_column < 0) {
      return Bad(step, "blocks of scales, and a place in one",
                 absl::StrCat("[", s.block_rows, ", ", s.block_columns, "] from [", s.first_row,
                              ", ", s.first_column, "]"));
    }
  }
  if (step.c.scales.buffer >= 0) return Bad(step, "no scales of c", "some");
  if (step.rows.counts >= 0) return Bad(step, "all rows of a product with scales", "some");
  return absl::OkStatus();
}

MatrixView ViewOf(const GemmStep::Matrix& matrix, bool transposed) {
  return {matrix.offset, matrix.batch_stride, transposed ? 1 : matrix.ld,
          transposed ? matrix.ld : 1};
}

std::optional<ScaleView> ViewOf(const GemmStep::Scales& s, bool transposed) {
  if (s.buffer < 0) return std::nullopt;
  ScaleView view{s.offset,     s.batch_stride,  s.ld,        1,
                 s.block_rows, s.block_columns, s.first_row, s.first_column};
  if (transposed) {
    std::swap(view.row, view.col);
    std::swap(view.block_rows, view.block_cols);
    std::swap(view.first_row, view.first_col);
  }
  return view;
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The share of each of `parts`, in whole tiles; the last ones may be smaller.
int64_t PerPart(int64_t extent, int64_t parts, int64_t tile) {
  return CeilDiv(CeilDiv(extent, parts), tile) * tile;
}

/// How many parts each dimension is cut into.
struct Grid {
  int64_t batches = 1, rows = 1, cols = 1;
};

/// The grid with the smallest largest part. Among equals the one that cuts batches first, then
/// columns, because each part rearranges all of its b.
Grid BestGrid(const GemmProblem& whole, int parts) {
  Grid best;
  double best_work = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= parts; ++rows) {
    for (int64_t cols = 1; rows * cols <= parts; ++cols) {
      if (parts % (rows * cols) != 0) continue;
      const int64_t batches = parts / (rows * cols);
      const double work = 1.0 * static_cast<double>(PerPart(whole.batch, batches, 1)) *
                          static_cast<double>(PerPart(whole.m, rows, kTileRows)) *
                          static_cast<double>(PerPart(whole.n, cols, kTileCols));
      if (work < best_work) best = {batches, rows, cols};
      best_work = std::min(best_work, work);
    }
  }
  return best;
}

bool IsEmpty(const GemmProblem& p) { return p.batch == 0 || p.m == 0 || p.n == 0; }

std::vector<GemmProblem> CutBy(const GemmProblem& whole, const Grid& grid) {
  const int64_t parts = grid.batches * grid.rows * grid.cols;
  const int64_t batches = PerPart(whole.batch, grid.batches, 1);
  const int64_t rows = PerPart(whole.m, grid.rows, kTileRows),
                cols = PerPart(whole.n, grid.cols, kTileCols);
  std::vector<GemmProblem> cut;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t t = part / (grid.rows * grid.cols) * batches;
    const int64_t i = part / grid.cols % grid.rows * rows;
    const int64_t j = part % grid.cols * cols;
    const bool idle = t >= whole.batch || i >= whole.m || j >= whole.n;
    if (idle) {
      cut.emplace_back();
      continue;
    }
    GemmProblem& problem = cut.emplace_back(whole);
    problem.batch = std::min(batches, whole.batch - t);
    problem.m = std::min(rows, whole.m - i);
    problem.n = std::min(cols, whole.n - j);
    problem.a = whole.a.At(t, i, 0);
    problem.b = whole.b.At(t, 0, j);
    problem.c = whole.c.At(t, i, j);
    if (whole.scales_a.has_value()) problem.scales_a = whole.scales_a->At(t, i, 0);
    if (whole.scales_b.has_value()) problem.scales_b = whole.scales_b->At(t, 0, j);
  }
  return cut;
}

/// OK unless some of the operands are of 8-bit floats, and not both, or of another result than f32.
absl::Status CheckFloats8(const GemmStep& step) {
  const bool of_a = step.a.float8.has_value(), of_b = step.b.float8.has_value();
  const bool fits = of_a == of_b && !step.c.float8.has_value() &&
                    (!of_a || (step.dtype == DType::kF32 && IsFloat8(*step.a.float8) &&
                               IsFloat8(*step.b.float8)));
  if (fits) return absl::OkStatus();
  return Bad(step, "both operands of 8-bit floats, and a result in f32, or neither",
             absl::StrCat(Name(step.TypeOf(step.a)), ", ", Name(step.TypeOf(step.b)), " and ",
                          Name(step.TypeOf(step.c))));
}

}  // namespace

absl::Status CheckGemm(const GemmStep& step, absl::Span<const Buffer> buffers) {
  RETURN_IF_ERROR(CheckFloats8(step));
  RETURN_IF_ERROR(CheckScales(step));
  if (step.dtype != DType::kF32 && step.dtype != DType::kF16 && step.dtype != DType::kBF16)
    return Bad(step, "f32, f16 or bf16", Name(step.dtype));
  if (step.threads < 1 || step.threads > kMostThreads)
    return Bad(step, absl::StrCat("1 to ", kMostThreads, " threads"), absl::StrCat(step.threads));
  if (step.candidate < 0 || step.beside < 0) {
    return Bad(step, "no negative candidate or beside",
               absl::StrCat(step.candidate, " and ", step.beside));
  }
  for (int64_t extent :
       {step.batch, step.m.total, step.m.per, step.n.total, step.n.per, step.k.total, step.k.per}) {
    if (extent < 0) return Bad(step, "no negative size", absl::StrCat(extent));
  }
  const int64_t m = step.m.Most(), n = step.n.Most(), k = step.k.Most();
  const StoredMatrix a{"a", step.a, step.transpose_a ? k : m, step.transpose_a ? m : k};
  const StoredMatrix b{"b", step.b, step.transpose_b ? n : k, step.transpose_b ? k : n};
  const StoredMatrix c{"c", step.c, m, n};
  for (const StoredMatrix& stored : {a, b, c}) RETURN_IF_ERROR(CheckMatrix(step, stored, buffers));
  RETURN_IF_ERROR(CheckBatchesApart(step, c));
  RETURN_IF_ERROR(CheckApart(step, c, a));
  RETURN_IF_ERROR(CheckApart(step, c, b));
  if (!step.scaled()) return absl::OkStatus();
  for (const StoredMatrix& scales :
       {ScalesOf(a, "the scales of a"), ScalesOf(b, "the scales of b")}) {
    RETURN_IF_ERROR(CheckMatrix(step, scales, buffers));
    RETURN_IF_ERROR(CheckApart(step, c, scales));
  }
  return absl::OkStatus();
}

absl::Status CheckCandidate(const GemmStep& step, int count) {
  if (step.candidate < count) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("Bind: ", step.label, ": want a candidate below ",
                                            count, ", as there are so many, have ",
                                            step.candidate));
}

GemmProblem ProblemOf(const GemmStep& step, int rank) {
  GemmProblem p{.batch = step.batch,
                .m = step.m.On(rank),
                .n = step.n.On(rank),
                .k = step.k.On(rank),
                .a = {},
                .b = {},
                .c = ViewOf(step.c, false)};
  if (IsEmpty(p)) return {};
  if (p.k > 0) {
    p.a = ViewOf(step.a, step.transpose_a);
    p.b = ViewOf(step.b, step.transpose_b);
    p.scales_a = ViewOf(step.a.scales, step.transpose_a);
    p.scales_b = ViewOf(step.b.scales, step.transpose_b);
  }
  // Transposed matrices are excluded: they form one matrix only if k is 1, and then a column whose
  // stride is too small. Scales of a batch may be others than a tall matrix has.
  const bool tall = !step.transpose_a && !step.scaled() && p.b.batch == 0 &&
                    p.a.batch == p.m * p.a.row && p.c.batch == p.m * p.c.row;
  if (tall) {
    p.m *= std::exchange(p.batch, 1);
    p.a.batch = p.c.batch = 0;
  }
  return p;
}

std::vector<GemmProblem> CutEvenly(const GemmProblem& whole, int parts) {
  return CutBy(whole, BestGrid(whole, parts));
}

std::vector<GemmProblem> CutColumns(const GemmProblem& whole, int parts) {
  return CutBy(whole, {.cols = parts});
}

}  // namespace coconet
