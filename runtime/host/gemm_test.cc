#include "runtime/host/gemm.h"

#include <omp.h>

#include <filesystem>
#include <limits>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/testing/gemm_cases.h"

namespace coconet {
namespace {

absl::Status Multiply(const GemmCase& c, GemmOperands& operands) {
  absl::StatusOr<std::unique_ptr<Gemm>> gemm =
      Gemm::Create(c.step, c.rank, {operands.a(), operands.scales_a()},
                   {operands.b(), operands.scales_b()}, operands.c(), nullptr, nullptr);
  if (!gemm.ok()) return gemm.status();
  std::vector<std::thread> threads;
  for (int block = 1; block < c.step.threads; ++block) {
    threads.emplace_back([&, block] { Gemm::Run(gemm->get(), block, c.step.threads); });
  }
  Gemm::Run(gemm->get(), 0, c.step.threads);
  for (std::thread& thread : threads) thread.join();
  return (*gemm)->failed() ? absl::InternalError("failed") : absl::OkStatus();
}

void ExpectRight(const std::vector<GemmCase>& cases) {
  for (const GemmCase& c : cases) {
    GemmOperands operands(c.step);
    EXPECT_EQ(Multiply(c, operands), absl::OkStatus()) << Text(c);
    EXPECT_EQ(operands.Wrong(c), "") << Text(c);
  }
}

class GemmOf : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, GemmOf, testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST_P(GemmOf, OddSizesAndTransposes) { ExpectRight(OddSizesAndTransposes(GetParam())); }

TEST_P(GemmOf, BatchesOfTransposedColumnsTimesOneMatrix) {
  ExpectRight(BatchesOfTransposedColumns(GetParam()));
}

TEST_P(GemmOf, BatchesStridesOffsetsAndThreads) {
  ExpectRight(BatchesStridesOffsetsAndThreads(GetParam()));
}

TEST_P(GemmOf, BatchesSideBySide) { ExpectRight(BatchesSideBySide(GetParam())); }

TEST_P(GemmOf, LargerThanABlock) { ExpectRight({{DenseGemm(GetParam(), 1, 17, 65, 1000)}}); }

TEST_P(GemmOf, SlicesOfEachRank) { ExpectRight(SlicesOfEachRank(GetParam())); }

TEST_P(GemmOf, NothingIsZerosOrNothing) { ExpectRight(NothingToSumOrNothing(GetParam())); }

class GemmOfFloats8 : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, GemmOfFloats8, testing::Values(DType::kF8E4M3, DType::kF8E5M2),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST_P(GemmOfFloats8, SumsInF32) {
  ExpectRight(OddSizesAndTransposes(GetParam()));
  ExpectRight(BatchesOfTransposedColumns(GetParam()));
  ExpectRight(BatchesStridesOffsetsAndThreads(GetParam()));
  ExpectRight(BatchesSideBySide(GetParam()));
  ExpectRight({{DenseGemm(GetParam(), 1, 17, 65, 2100)}});
  ExpectRight(SlicesOfEachRank(GetParam()));
  ExpectRight(NothingToSumOrNothing(GetParam()));
}

TEST_P(GemmOfFloats8, AreTimesTheirScales) { ExpectRight(ScalesOfBlocks(GetParam())); }

TEST_P(GemmOfFloats8, GoesEveryWayAlike) {
  for (int way = 1; way < kGemmWays; ++way) {
    GemmCase c{DenseGemm(GetParam(), 2, 20, 33, 40)};
    c.step.candidate = way;
    ExpectRight({c});
  }
}

TEST_P(GemmOf, GoesEachWay) {
  for (int way = 1; way < kGemmWays; ++way) {
    std::vector<GemmCase> cases = {{DenseGemm(GetParam(), 1, 5, 7, 3)},
                                   {DenseGemm(GetParam(), 1, 70, 96, 130)},
                                   {DenseGemm(GetParam(), 3, 20, 33, 40)}};
    for (const std::vector<GemmCase>& more :
         {OddSizesAndTransposes(GetParam()), BatchesStridesOffsetsAndThreads(GetParam()),
          BatchesSideBySide(GetParam()), SlicesOfEachRank(GetParam())})
      cases.insert(cases.end(), more.begin(), more.end());
    for (GemmCase& c : cases) c.step.candidate = way;
    ExpectRight(cases);
  }
}

TEST_P(GemmOf, HasAsManyWaysAsItSays) {
  GemmCase c{DenseGemm(GetParam(), 1, 5, 7, 3)};
  c.step.candidate = kGemmWays;
  GemmOperands operands(c.step);
  EXPECT_EQ(
      Multiply(c, operands),
      absl::OutOfRangeError("Bind: MM: want a candidate below 3, as there are so many, have 3"));
}

// Libraries pad what they multiply; padding times an infinity is a NaN. In a piece of the columns,
// as in a whole matrix.
TEST_P(GemmOf, AnInfinityInTheLastColumnStaysOne) {
  constexpr int64_t kM = 66, kRow = 21, kWidth = 64;
  const double infinity = std::numeric_limits<double>::infinity();
  const DType dtype = GetParam();
  for (int64_t n : {int64_t{11}, kWidth}) {
    for (int64_t k = 1; k <= 9; ++k) {
      for (int way = 0; way < kGemmWays; ++way) {
        GemmCase c{DenseGemm(dtype, 1, kM, n, k)};
        c.step.b.ld = c.step.c.ld = kWidth;
        c.step.candidate = way;
        std::vector<unsigned char> a(kM * k * SizeOf(dtype)), b(k * kWidth * SizeOf(dtype)),
            out(kM * kWidth * SizeOf(dtype));
        for (int64_t i = 0; i < kM * k; ++i) StoreElement(dtype, a.data(), i, 0.5);
        for (int64_t i = 0; i < k * kWidth; ++i) StoreElement(dtype, b.data(), i, 0.25);
        StoreElement(dtype, a.data(), kRow * k + k - 1, -infinity);
        const absl::StatusOr<std::unique_ptr<Gemm>> gemm =
            Gemm::Create(c.step, c.rank, a.data(), b.data(), out.data(), nullptr, nullptr);
        ASSERT_TRUE(gemm.ok()) << gemm.status();
        Gemm::Run(gemm->get(), 0, 1);
        for (int64_t i = 0; i < kM * n; ++i) {
          const double want = i / n == kRow ? -infinity : 0.125 * static_cast<double>(k);
          ASSERT_EQ(LoadElement(dtype, out.data(), i / n * kWidth + i % n), want)
              << "n=" << n << " k=" << k << " way=" << way;
        }
      }
    }
  }
}

TEST_P(GemmOf, RunsAgainWithNewValues) {
  const GemmStep step = DenseGemm(GetParam(), 1, 20, 30, 40);
  std::vector<char> a(20 * 40 * 4), b(40 * 30 * 4), c(20 * 30 * 4);
  auto gemm = Gemm::Create(step, 0, a.data(), b.data(), c.data(), nullptr, nullptr);
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
  const GemmStep whole = DenseGemm(GetParam(), 1, kRows, kColumns, kInner);
  std::vector<char> a(kRows * kInner * 4), b(kInner * kColumns * 4), c(kRows * kColumns * 4);
  for (int threads : {1, 2}) {
    std::vector<std::unique_ptr<Gemm>> pieces;
    for (const auto& [begin, end] : {std::pair{0, 32}, std::pair{32, 33}, std::pair{33, 70}}) {
      GemmStep piece = whole;
      piece.threads = threads;
      piece.candidate = static_cast<int>(GemmWay::kPacked);
      piece.m = {end - begin, 0};
      piece.a.offset = begin * whole.a.ld;
      piece.c.offset = begin * whole.c.ld;
      auto made = Gemm::Create(piece, 0, a.data(), b.data(), c.data(), nullptr,
                               pieces.empty() ? nullptr : pieces[0].get());
      ASSERT_TRUE(made.ok()) << made.status();
      pieces.push_back(*std::move(made));
    }
    for (int value : {1, 3}) {  // new weights in each run
      for (int64_t i = 0; i < kRows * kInner; ++i)
        StoreElement(GetParam(), a.data(), i, i / kInner % 5);
      for (int64_t i = 0; i < kInner * kColumns; ++i)
        StoreElement(GetParam(), b.data(), i, i % kColumns == 7 ? value : 0.5);
      for (const auto& piece : pieces) {
        for (int block = 0; block < threads; ++block) Gemm::Run(piece.get(), block, threads);
      }
      for (int64_t i = 0; i < kRows * kColumns; ++i) {
        const double want =
            static_cast<double>(i / kColumns % 5 * kInner) * (i % kColumns == 7 ? value : 0.5);
        ASSERT_EQ(LoadElement(GetParam(), c.data(), i), want)
            << i << " of value " << value << ", " << threads << " threads";
      }
    }
  }
}

/// Products of groups of 20 rows, some rows of which are in use, in `threads` parts.
class RowsInUse {
 public:
  static constexpr int64_t kBatch = 3, kGroups = 4, kCapacity = 20, kColumns = 70, kInner = 33;
  static constexpr int64_t kRows = kGroups * kCapacity;

  RowsInUse(DType dtype, int threads, bool one_matrix)
      : step_(DenseGemm(dtype, kBatch, kRows, kColumns, kInner, false, /*transpose_b=*/true)),
        a_(kBatch * kRows * kInner * 4),
        b_(kBatch * kInner * kColumns * 4),
        c_(kBatch * kRows * kColumns * 4) {
    step_.threads = threads;
    step_.rows = {.counts = 3, .capacity = kCapacity};
    if (one_matrix) step_.b.batch_stride = 0;
    for (int64_t i = 0; i < kBatch * kRows * kInner; ++i) StoreElement(dtype, a_.data(), i, A(i));
    for (int64_t i = 0; i < kBatch * kInner * kColumns; ++i)
      StoreElement(dtype, b_.data(), i, B(i));
  }

  /// The first element in use that is wrong after a run with `counts`; -1: none.
  int64_t FirstWrong(const std::vector<int32_t>& counts) {
    if (gemm_ == nullptr) {
      counts_ = counts;
      auto made = Gemm::Create(step_, 0, a_.data(), b_.data(), c_.data(), counts_.data(), nullptr);
      if (!made.ok()) return -2;
      gemm_ = *std::move(made);
    }
    std::copy(counts.begin(), counts.end(), counts_.begin());
    const int64_t elements = kBatch * kRows * kColumns;
    for (int64_t i = 0; i < elements; ++i) StoreElement(step_.dtype, c_.data(), i, -1);
    for (int block = 0; block < step_.threads; ++block)
      Gemm::Run(gemm_.get(), block, step_.threads);
    if (gemm_->failed()) return -2;
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t row = i / kColumns;
      if (row % kCapacity >= counts[row / kCapacity]) continue;
      double sum = 0;
      const int64_t batch = step_.b.batch_stride == 0 ? 0 : row / kRows;
      for (int64_t k = 0; k < kInner; ++k)
        sum += A(row * kInner + k) * B((batch * kColumns + i % kColumns) * kInner + k);
      if (LoadElement(step_.dtype, c_.data(), i) != sum) return i;
    }
    return -1;
  }

 private:
  // Sums of these have few bits.
  static double A(int64_t i) { return i % 7 == 0 ? static_cast<double>(i % 3) : 0; }
  static double B(int64_t i) { return static_cast<double>(i % 5) - 2; }

  GemmStep step_;
  std::vector<char> a_, b_, c_;
  std::vector<int32_t> counts_;
  std::unique_ptr<Gemm> gemm_;
};

TEST_P(GemmOf, RowsInUseAreMultiplied) {
  for (int threads : {1, 3}) {
    for (bool one_matrix : {false, true}) {
      RowsInUse product(GetParam(), threads, one_matrix);
      for (const std::vector<int32_t>& counts : std::vector<std::vector<int32_t>>{
               {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},                 // packed
               {0, 0, 7, 0, 20, 0, 0, 0, 0, 0, 0, 1},                   // one range
               {20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20},        // all
               {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},                    // none
               {-5, 21, 1 << 30, 19, 3, -1, 20, 20, 20, 20, 0, 13}}) {  // out of range
        EXPECT_EQ(product.FirstWrong(counts), -1)
            << threads << " threads, " << (one_matrix ? "one matrix" : "several");
      }
    }
  }
}

TEST(RowsMatmul, MultipliesFewMoreRowsThanAreInUse) {
  for (int64_t rows = 1; rows < 5000; ++rows) {
    const int64_t step = RowsMatmul::StepOf(rows);
    ASSERT_GE(step, rows);
    ASSERT_LE(step, std::max(rows + 15, rows + rows / 16));
  }
}

TEST(Gemm, TakesAsManyThreadsAsAskedWhateverOpenMpIsTold) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                         std::filesystem::directory_iterator());
  };
  const int before = omp_get_max_threads();
  omp_set_num_threads(5);
  const int64_t running = threads();
  const GemmCase c{DenseGemm(DType::kF32, 1, 300, 300, 300)};
  GemmOperands operands(c.step);
  EXPECT_EQ(Multiply(c, operands), absl::OkStatus());
  EXPECT_EQ(threads(), running);
  EXPECT_EQ(omp_get_max_threads(), 5);
  omp_set_num_threads(before);
}

/// f16 and bf16 by way of f32; tested directly, because oneDNN takes these types on most CPUs.
TEST(WidenedMatmul, IsRoundedOnceInEveryBlock) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    for (auto [m, n, k] :
         {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {400, 3, 5}, {3, 400, 5}, {5, 3, 800}}) {
      const int64_t half = 2;
      std::vector<char> a(m * k * half), b(k * n * half), c(m * n * half);
      // Integers: their sums are exact in f32, and some need rounding in the half type.
      for (int64_t i = 0; i < m * k; ++i)
        StoreElement(dtype, a.data(), i, static_cast<double>(i % 13));
      for (int64_t i = 0; i < k * n; ++i)
        StoreElement(dtype, b.data(), i, static_cast<double>(i % 7));
      auto matmul = MakeWidenedMatmul(
          {.dtype = dtype, .m = m, .n = n, .k = k, .a = {k, 1}, .b = {1, k}, .c = {n, 1}});
      ASSERT_TRUE(matmul.ok()) << matmul.status();
      ASSERT_TRUE((*matmul)->Run(a.data(), b.data(), c.data()));
      for (int64_t i = 0; i < m * n; ++i) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum += static_cast<double>((i / n * k + p) % 13 * ((i % n * k + p) % 7));
        char want[half];
        StoreElement(dtype, want, 0, sum);
        ASSERT_EQ(LoadElement(dtype, c.data(), i), LoadElement(dtype, want, 0))
            << m << " " << n << " " << k << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace coconet
