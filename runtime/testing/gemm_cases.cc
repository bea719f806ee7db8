#include "runtime/testing/gemm_cases.h"

#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/node/gemm_problem.h"

namespace coconet {
namespace {

constexpr int kSeed = 20;
constexpr unsigned char kPoison = 0xa5;

MatrixView ViewOf(const GemmStep::Matrix& matrix, bool transposed) {
  return {matrix.offset, matrix.batch_stride, transposed ? 1 : matrix.ld,
          transposed ? matrix.ld : 1};
}

/// Values for a or b of every test: computed once per type.
const std::vector<unsigned char>& Values(DType dtype, char of) {
  constexpr int64_t kElements = 150000;
  static auto* values = new std::map<std::pair<DType, char>, std::vector<unsigned char>>();
  std::vector<unsigned char>& data = (*values)[{dtype, of}];
  if (!data.empty()) return data;
  data.resize(kElements * SizeOf(dtype));
  std::mt19937 random(kSeed + of);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < kElements; ++i) StoreElement(dtype, data.data(), i, normal(random));
  return data;
}

/// The scale of element (i, j) of matrix t of an operand.
double ScaleOf(const GemmStep::Scales& s, const float* scales, bool transposed, int64_t t,
               int64_t i, int64_t j) {
  if (s.buffer < 0) return 1;
  if (transposed) std::swap(i, j);
  return scales[s.offset + t * s.batch_stride + (s.first_row + i) / s.block_rows * s.ld +
                (s.first_column + j) / s.block_columns];
}

}  // namespace

GemmStep DenseGemm(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, bool transpose_a,
                   bool transpose_b) {
  GemmStep step{.dtype = dtype,
                .batch = batch,
                .m = {m},
                .n = {n},
                .k = {k},
                .a = {.buffer = 0, .ld = transpose_a ? m : k, .batch_stride = m * k},
                .b = {.buffer = 1, .ld = transpose_b ? k : n, .batch_stride = k * n},
                .c = {.buffer = 2, .ld = n, .batch_stride = m * n},
                .transpose_a = transpose_a,
                .transpose_b = transpose_b,
                .label = "MM"};
  if (IsFloat8(dtype)) {
    step.dtype = DType::kF32;
    step.a.float8 = dtype;
    step.b.float8 = dtype == DType::kF8E4M3 ? DType::kF8E5M2 : DType::kF8E4M3;
  }
  return step;
}

std::string Text(const GemmCase& c) {
  return absl::StrCat(Print(Plan{.buffers = {}, .steps = {c.step}}), "on rank ", c.rank, ", seed ",
                      kSeed);
}

std::vector<GemmCase> OddSizesAndTransposes(DType dtype) {
  const std::vector<int64_t> sizes = {1, 3, 17, 65, 129};
  std::vector<GemmCase> cases;
  for (int64_t m : sizes) {
    for (int64_t n : sizes) {
      for (int64_t k : sizes) {
        for (int transposes = 0; transposes < 4; ++transposes) {
          if (m * n * k > 500000 && transposes % 3 != 0)
            continue;  // of the largest: both transposed or none
          cases.push_back({DenseGemm(dtype, 1, m, n, k, transposes & 1, transposes & 2)});
        }
      }
    }
  }
  return cases;
}

std::vector<GemmCase> BatchesStridesOffsetsAndThreads(DType dtype) {
  std::mt19937 random(kSeed);
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(random() % (most + 1)); };
  std::vector<GemmCase> cases;
  for (int i = 0; i < 150; ++i) {
    const int64_t batch = 1 + up_to(3), m = 1 + up_to(40), n = 1 + up_to(80), k = 1 + up_to(60);
    GemmStep step = DenseGemm(dtype, batch, m, n, k, up_to(1), up_to(1));
    for (auto [matrix, rows] : {std::pair(&step.a, step.transpose_a ? k : m),
                                {&step.b, step.transpose_b ? n : k},
                                {&step.c, m}}) {
      matrix->offset = up_to(70);
      matrix->ld += up_to(1) * up_to(70);
      matrix->batch_stride = rows * matrix->ld + up_to(1) * up_to(70);
    }
    if (up_to(3) == 0) step.a.batch_stride = 0;
    if (up_to(3) == 0) step.b.batch_stride = 0;
    step.threads = static_cast<int>(1 + up_to(3));
    cases.push_back({step});
  }
  return cases;
}

std::vector<GemmCase> ScalesOfBlocks(DType dtype) {
  std::mt19937 random(kSeed);
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(random() % (most + 1)); };
  std::vector<GemmCase> cases = BatchesStridesOffsetsAndThreads(dtype);
  cases.push_back({DenseGemm(dtype, 1, 1100, 3, 40)});
  cases.push_back({DenseGemm(dtype, 1, 3, 1100, 40, false, true)});
  cases.push_back({DenseGemm(dtype, 1, 3, 5, 2500, true, true)});
  for (GemmCase& c : cases) {
    int buffer = 3;
    for (GemmStep::Matrix* matrix : {&c.step.a, &c.step.b}) {
      matrix->scales = {.buffer = buffer++,
                        .offset = up_to(9),
                        .ld = 50,  // rows may have some of their scales in common
                        .batch_stride = up_to(3) * 100,
                        .block_rows = 1 + up_to(1) * up_to(130),
                        .block_columns = 1 + up_to(1) * up_to(130)};
      matrix->scales.first_row = up_to(1) * up_to(matrix->scales.block_rows - 1);
      matrix->scales.first_column = up_to(1) * up_to(matrix->scales.block_columns - 1);
    }
  }
  return cases;
}

std::vector<GemmCase> BatchesOfTransposedColumns(DType dtype) {
  std::vector<GemmCase> cases;
  for (int64_t k : {1, 2}) {
    GemmStep step = DenseGemm(dtype, 31, 2, 1, k, /*transpose_a=*/true);
    step.b.batch_stride = 0;
    cases.push_back({step});
  }
  return cases;
}

std::vector<GemmCase> BatchesSideBySide(DType dtype) {
  GemmStep heads = DenseGemm(dtype, 4, 33, 16, 20);  // [33, 4, 20] . [20, 16] -> [33, 4, 16]
  heads.a.ld = 80, heads.a.batch_stride = 20;
  heads.c = {.buffer = 2, .ld = 64, .batch_stride = 16};
  return {{heads}};
}

std::vector<GemmCase> SlicesOfEachRank(DType dtype) {
  std::vector<GemmCase> cases;
  for (int dimension = 0; dimension < 3; ++dimension) {
    GemmStep step = DenseGemm(dtype, 2, 64, 64, 64);
    RankExtent& extent = dimension == 0 ? step.m : dimension == 1 ? step.n : step.k;
    extent = {100, 64};
    for (int rank = 0; rank < 4; ++rank) cases.push_back({step, rank});  // 64, 36, 0, 0
  }
  return cases;
}

std::vector<GemmCase> NothingToSumOrNothing(DType dtype) {
  std::vector<GemmCase> cases = {{DenseGemm(dtype, 2, 5, 7, 0)},
                                 {BatchesSideBySide(dtype)[0].step}};
  cases[1].step.k = {0};
  for (int threads : {1, 3}) {
    for (int empty = 0; empty < 3; ++empty) {
      GemmStep step =
          DenseGemm(dtype, empty == 0 ? 0 : 2, empty == 1 ? 0 : 5, empty == 2 ? 0 : 7, 3);
      step.threads = threads;
      cases.push_back({step});
    }
  }
  return cases;
}

GemmOperands::GemmOperands(const GemmStep& step)
    : dtype_(step.dtype),
      of_a_(step.TypeOf(step.a)),
      of_b_(step.TypeOf(step.b)),
      size_(SizeOf(step.dtype)),
      a_(Values(of_a_, 'a')),
      b_(Values(of_b_, 'b')) {
  const MatrixView c = ViewOf(step.c, false);
  c_.assign((c.At(step.batch, step.m.Most(), step.n.Most()).begin + 100) * size_, kPoison);
}

std::string GemmOperands::Wrong(const GemmCase& of) const {
  const GemmStep& step = of.step;
  const int64_t m = step.m.On(of.rank), n = step.n.On(of.rank), k = step.k.On(of.rank);
  const MatrixView a = ViewOf(step.a, step.transpose_a), b = ViewOf(step.b, step.transpose_b);
  std::vector<bool> written(c_.size() / size_);
  for (int64_t t = 0; t < step.batch; ++t) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const int64_t at = step.c.offset + t * step.c.batch_stride + i * step.c.ld + j;
        written[at] = true;
        double sum = 0, magnitude = 0;
        for (int64_t p = 0; p < k; ++p) {
          const double product = LoadElement(of_a_, a_.data(), a.At(t, i, p).begin).real() *
                                 ScaleOf(step.a.scales, scales_a(), step.transpose_a, t, i, p) *
                                 LoadElement(of_b_, b_.data(), b.At(t, p, j).begin).real() *
                                 ScaleOf(step.b.scales, scales_b(), step.transpose_b, t, p, j);
          sum += product;
          magnitude += std::abs(product);
        }
        const double have = LoadElement(dtype_, c_.data(), at).real();
        const int64_t roundings = step.scaled() ? k + 2 : k;  // each element times its scale
        if (!(std::abs(have - sum) <= Bound(roundings, sum, magnitude))) {
          return absl::StrCat("c[", t, ", ", i, ", ", j, "]: want ", sum, ", have ", have);
        }
      }
    }
  }
  for (size_t i = 0; i < c_.size(); ++i) {
    if (!written[i / size_] && c_[i] != kPoison)
      return absl::StrCat("element ", i / size_, " is not c's");
  }
  return "";
}

const float* GemmOperands::scales_a() const {
  return reinterpret_cast<const float*>(Values(DType::kF32, 's').data());
}
const float* GemmOperands::scales_b() const { return scales_a() + 100; }

/// A sum in f32, and one rounding more for a narrower type.
double GemmOperands::Bound(int64_t roundings, double sum, double magnitude) const {
  const double error = static_cast<double>(roundings) * 0x1p-24 * magnitude;
  return dtype_ == DType::kF32
             ? error
             : error + UnitRoundoff(dtype_) * (std::abs(sum) + error) + MinSubnormal(dtype_);
}

}  // namespace coconet
