#include "runtime/host/gemm.h"

#include <omp.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr int kSeed = 20;
constexpr unsigned char kPoison = 0xa5;

MatrixView ViewOf(const GemmStep::Matrix& matrix, bool transposed) {
  return {matrix.offset, matrix.batch_stride, transposed ? 1 : matrix.ld, transposed ? matrix.ld : 1};
}

/// Values for a or b of every test: computed once a type.
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

/// The three buffers of a step. c is poisoned, and a guard behind it.
class Operands {
 public:
  explicit Operands(const GemmStep& step)
      : dtype_(step.dtype), size_(SizeOf(step.dtype)), a_(Values(dtype_, 'a')), b_(Values(dtype_, 'b')) {
    const MatrixView c = ViewOf(step.c, false);
    c_.assign((c.At(step.batch, step.m.Most(), step.n.Most()).begin + 100) * size_, kPoison);
  }

  absl::Status Run(const GemmStep& step, int rank) {
    absl::StatusOr<std::unique_ptr<Gemm>> gemm = Gemm::Create(step, rank, a_.data(), b_.data(), c_.data(), {});
    if (!gemm.ok()) return gemm.status();
    std::vector<std::thread> threads;
    for (int block = 1; block < step.threads; ++block) {
      threads.emplace_back([&, block] { Gemm::Run(gemm->get(), block, step.threads); });
    }
    Gemm::Run(gemm->get(), 0, step.threads);
    for (std::thread& thread : threads) thread.join();
    return (*gemm)->failed() ? absl::InternalError("failed") : absl::OkStatus();
  }

  /// What is wrong with c after a Run; "" when nothing is: near enough the sum in double, and all else untouched.
  std::string Wrong(const GemmStep& step, int rank) const {
    const int64_t m = step.m.On(rank), n = step.n.On(rank), k = step.k.On(rank);
    const MatrixView a = ViewOf(step.a, step.transpose_a), b = ViewOf(step.b, step.transpose_b);
    std::vector<bool> written(c_.size() / size_);
    for (int64_t t = 0; t < step.batch; ++t) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const int64_t at = step.c.offset + t * step.c.batch_stride + i * step.c.ld + j;
          written[at] = true;
          double sum = 0, magnitude = 0;
          for (int64_t p = 0; p < k; ++p) {
            const double product = LoadElement(dtype_, a_.data(), a.At(t, i, p).begin) *
                                   LoadElement(dtype_, b_.data(), b.At(t, p, j).begin);
            sum += product;
            magnitude += std::abs(product);
          }
          const double have = LoadElement(dtype_, c_.data(), at);
          if (!(std::abs(have - sum) <= Bound(k, sum, magnitude))) {
            return absl::StrCat("c[", t, ", ", i, ", ", j, "]: want ", sum, ", have ", have);
          }
        }
      }
    }
    for (size_t i = 0; i < c_.size(); ++i) {
      if (!written[i / size_] && c_[i] != kPoison) return absl::StrCat("element ", i / size_, " is not c's");
    }
    return "";
  }

 private:
  /// A sum in f32, and one rounding more for a narrower type.
  double Bound(int64_t k, double sum, double magnitude) const {
    const double error = static_cast<double>(k) * 0x1p-24 * magnitude;
    return dtype_ == DType::kF32 ? error : error + UnitRoundoff(dtype_) * (std::abs(sum) + error) + MinSubnormal(dtype_);
  }

  DType dtype_;
  int64_t size_;
  const std::vector<unsigned char>& a_;
  const std::vector<unsigned char>& b_;
  std::vector<unsigned char> c_;
};

std::string Text(const GemmStep& step) { return Print(Plan{.buffers = {}, .steps = {step}}); }

void ExpectRight(const GemmStep& step, int rank = 0) {
  Operands operands(step);
  EXPECT_EQ(operands.Run(step, rank), absl::OkStatus()) << Text(step);
  EXPECT_EQ(operands.Wrong(step, rank), "") << Text(step) << "on rank " << rank << ", seed " << kSeed;
}

/// Dense matrices, one after the other.
GemmStep Dense(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, bool transpose_a = false,
               bool transpose_b = false) {
  return {.dtype = dtype,
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
}

class GemmOf : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, GemmOf, testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST_P(GemmOf, OddSizesAndTransposes) {
  const std::vector<int64_t> sizes = {1, 3, 17, 65, 129};
  for (int64_t m : sizes) {
    for (int64_t n : sizes) {
      for (int64_t k : sizes) {
        for (int transposes = 0; transposes < 4; ++transposes) {
          if (m * n * k > 500000 && transposes % 3 != 0) continue;  // the largest: both or none
          ExpectRight(Dense(GetParam(), 1, m, n, k, transposes & 1, transposes & 2));
        }
      }
    }
  }
}

TEST_P(GemmOf, BatchesOfTransposedColumnsTimesOneMatrix) {
  for (int64_t k : {1, 2}) {
    GemmStep step = Dense(GetParam(), 31, 2, 1, k, /*transpose_a=*/true);
    step.b.batch_stride = 0;
    ExpectRight(step);
  }
}

TEST_P(GemmOf, BatchesStridesOffsetsAndThreads) {
  std::mt19937 random(kSeed);
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(random() % (most + 1)); };
  for (int i = 0; i < 150; ++i) {
    const int64_t batch = 1 + up_to(3), m = 1 + up_to(40), n = 1 + up_to(80), k = 1 + up_to(60);
    GemmStep step = Dense(GetParam(), batch, m, n, k, up_to(1), up_to(1));
    for (auto [matrix, rows] : {std::pair(&step.a, step.transpose_a ? k : m), {&step.b, step.transpose_b ? n : k}, {&step.c, m}}) {
      matrix->offset = up_to(70);
      matrix->ld += up_to(1) * up_to(70);
      matrix->batch_stride = rows * matrix->ld + up_to(1) * up_to(70);
    }
    if (up_to(3) == 0) step.a.batch_stride = 0;
    if (up_to(3) == 0) step.b.batch_stride = 0;
    step.threads = static_cast<int>(1 + up_to(3));
    ExpectRight(step);
  }
}

TEST_P(GemmOf, BatchesSideBySide) {
  GemmStep heads = Dense(GetParam(), 4, 33, 16, 20);  // [33, 4, 20] . [20, 16] -> [33, 4, 16]
  heads.a = {.buffer = 0, .ld = 80, .batch_stride = 20};
  heads.c = {.buffer = 2, .ld = 64, .batch_stride = 16};
  ExpectRight(heads);
}

TEST_P(GemmOf, LargerThanABlock) { ExpectRight(Dense(GetParam(), 1, 17, 65, 1000)); }

TEST_P(GemmOf, SlicesOfEachRank) {
  for (int dimension = 0; dimension < 3; ++dimension) {
    GemmStep step = Dense(GetParam(), 2, 64, 64, 64);
    RankExtent& extent = dimension == 0 ? step.m : dimension == 1 ? step.n : step.k;
    extent = {100, 64};
    for (int rank = 0; rank < 4; ++rank) ExpectRight(step, rank);  // 64, 36, 0, 0
  }
}

TEST_P(GemmOf, HasOneWayToGo) {
  GemmStep step = Dense(GetParam(), 1, 5, 7, 3);
  step.candidate = 1;
  Operands operands(step);
  const absl::Status status = operands.Run(step, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(status.message(), "Bind: MM: want a candidate below 1, as there are so many, have 1");
}

TEST_P(GemmOf, NothingIsZerosOrNothing) {
  ExpectRight(Dense(GetParam(), 2, 5, 7, 0));
  for (int threads : {1, 3}) {
    for (int empty = 0; empty < 3; ++empty) {
      GemmStep step = Dense(GetParam(), empty == 0 ? 0 : 2, empty == 1 ? 0 : 5, empty == 2 ? 0 : 7, 3);
      step.threads = threads;
      ExpectRight(step);
    }
  }
}

TEST_P(GemmOf, RunsAgainWithNewValues) {
  const GemmStep step = Dense(GetParam(), 1, 20, 30, 40);
  std::vector<char> a(20 * 40 * 4), b(40 * 30 * 4), c(20 * 30 * 4);
  auto gemm = Gemm::Create(step, 0, a.data(), b.data(), c.data(), {});
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  for (int value : {1, 2}) {
    for (int64_t i = 0; i < 20 * 40; ++i) StoreElement(GetParam(), a.data(), i, value);
    for (int64_t i = 0; i < 40 * 30; ++i) StoreElement(GetParam(), b.data(), i, 1);
    Gemm::Run(gemm->get(), 0, 1);
    EXPECT_EQ(LoadElement(GetParam(), c.data(), 599), 40 * value);
  }
}

TEST_P(GemmOf, PiecesShareWhatTheFirstOneRearranges) {
  constexpr int64_t kRows = 70, kColumns = 96, kInner = 128;
  const GemmStep whole = Dense(GetParam(), 1, kRows, kColumns, kInner);
  std::vector<char> a(kRows * kInner * 4), b(kInner * kColumns * 4), c(kRows * kColumns * 4);
  for (int threads : {1, 2}) {
    std::vector<std::unique_ptr<Gemm>> pieces;
    for (const auto& [begin, end] : {std::pair{0, 32}, std::pair{32, 33}, std::pair{33, 70}}) {
      GemmStep piece = whole;
      piece.threads = threads;
      piece.m = {end - begin, 0};
      piece.a.offset = begin * whole.a.ld;
      piece.c.offset = begin * whole.c.ld;
      auto made = Gemm::Create(piece, 0, a.data(), b.data(), c.data(), {.shares = pieces.empty(), .first = pieces.empty() ? nullptr : pieces[0].get()});
      ASSERT_TRUE(made.ok()) << made.status();
      pieces.push_back(*std::move(made));
    }
    for (int value : {1, 3}) {  // other weights at each step
      for (int64_t i = 0; i < kRows * kInner; ++i) StoreElement(GetParam(), a.data(), i, i / kInner % 5);
      for (int64_t i = 0; i < kInner * kColumns; ++i) StoreElement(GetParam(), b.data(), i, i % kColumns == 7 ? value : 0.5);
      for (const auto& piece : pieces) {
        for (int block = 0; block < threads; ++block) Gemm::Run(piece.get(), block, threads);
      }
      for (int64_t i = 0; i < kRows * kColumns; ++i) {
        const double want = static_cast<double>(i / kColumns % 5 * kInner) * (i % kColumns == 7 ? value : 0.5);
        ASSERT_EQ(LoadElement(GetParam(), c.data(), i), want) << i << " of value " << value << ", " << threads << " threads";
      }
    }
  }
}

TEST(Gemm, TakesAsManyThreadsAsAskedWhateverOpenMpIsTold) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  const int before = omp_get_max_threads();
  omp_set_num_threads(5);
  const int64_t running = threads();
  GemmStep step = Dense(DType::kF32, 1, 300, 300, 300);
  Operands operands(step);
  EXPECT_EQ(operands.Run(step, 0), absl::OkStatus());
  EXPECT_EQ(threads(), running);
  EXPECT_EQ(omp_get_max_threads(), 5);
  omp_set_num_threads(before);
}

/// Halves by way of f32, which a CPU whose library has the type does not take by itself.
TEST(WidenedMatmul, IsRoundedOnceInEveryBlock) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {400, 3, 5}, {3, 400, 5}, {5, 3, 800}}) {
      const int64_t half = 2;
      std::vector<char> a(m * k * half), b(k * n * half), c(m * n * half);
      // Integers: sums are exact in f32, and some too long for a half.
      for (int64_t i = 0; i < m * k; ++i) StoreElement(dtype, a.data(), i, static_cast<double>(i % 13));
      for (int64_t i = 0; i < k * n; ++i) StoreElement(dtype, b.data(), i, static_cast<double>(i % 7));
      auto matmul = MakeWidenedMatmul({.dtype = dtype, .m = m, .n = n, .k = k, .a = {k, 1}, .b = {1, k}, .c = {n, 1}});
      ASSERT_TRUE(matmul.ok()) << matmul.status();
      ASSERT_TRUE((*matmul)->Run(a.data(), b.data(), c.data()));
      for (int64_t i = 0; i < m * n; ++i) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += static_cast<double>((i / n * k + p) % 13 * ((i % n * k + p) % 7));
        char want[half];
        StoreElement(dtype, want, 0, sum);
        ASSERT_EQ(LoadElement(dtype, c.data(), i), LoadElement(dtype, want, 0)) << m << " " << n << " " << k << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace coconet
