#include "autotune/measure/test_data.h"

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr int64_t kN = 10000;

Graph ProgramOf(DType dtype) {
  Graph g;
  g.Add(Input{"g", {dtype, {kN}, Layout::Local()}});
  g.Add(State{"m", {dtype, {kN}, Layout::Auto()}});
  g.Add(Input{"s", {dtype, {}, Layout::Replicated()}});
  return g;
}

std::vector<char> Filled(const TestData& data, DType dtype, const std::string& tensor, int rank,
                         const Layout& layout, int ranks) {
  const TensorType type{dtype, {kN}, layout};
  std::vector<char> storage(2 * kN * SizeOf(dtype), '\x7f');
  data.Fill(tensor, rank, PartOf(type, ranks, rank), storage.data());
  return storage;
}

TEST(TestData, IsOneFunctionHoweverItIsCut) {
  for (DType dtype : kAllDTypes) {
    const TestData data(ProgramOf(dtype), 3, 8);
    const std::vector<char> whole = Filled(data, dtype, "m", 0, Layout::Replicated(), 3);
    for (int rank = 0; rank < 3; ++rank) {
      const Part part = PartOf({dtype, {kN}, Layout::Sliced(0)}, 3, rank);
      const std::vector<char> slice = Filled(data, dtype, "m", rank, Layout::Sliced(0), 3);
      for (int64_t i = 0; i < part.elements(); ++i) {
        const Number value = LoadElement(dtype, slice.data(), part.Stored(i));
        ASSERT_EQ(value, LoadElement(dtype, whole.data(), part.Global(i)))
            << Name(dtype) << " " << i;
        ASSERT_EQ(value, data.At("m", rank, part.Global(i)));
      }
      EXPECT_EQ(slice[part.elements() * SizeOf(dtype)], '\x7f') << "padding is left alone";
    }
  }
}

TEST(TestData, IndicesAreMostlyRowsOfTheTable) {
  for (int64_t rows : {1, 3, 50000}) {
    Graph g;
    const NodeId table = g.Add(Input{"table", {DType::kF32, {5, rows}, Layout::Replicated()}});
    const NodeId i = g.Add(Input{"i", {DType::kI32, {kN}, Layout::Local()}});
    const NodeId other = g.Add(Input{"other", {DType::kI32, {kN}, Layout::Local()}});
    g.Add(Gather{1}, {table, g.Add(Reshape{{kN / 2, 2}}, {i})});
    g.Add(Output{"y"}, {other});
    const TestData data(g, 3, 8);
    std::set<int64_t> seen;
    int below = 0, above = 0;
    for (int64_t at = 0; at < kN; ++at) {
      const auto row = static_cast<int64_t>(data.At("i", 1, at).integer());
      below += row < 0;
      above += row >= rows;
      if (row >= 0 && row < rows) seen.insert(row);
      ASSERT_LE(std::abs(data.At("other", 1, at).real()), 8);
    }
    EXPECT_GT(below, kN / 64);
    EXPECT_GT(above, kN / 64);
    EXPECT_LT(below + above, kN / 8);
    EXPECT_GE(static_cast<int64_t>(seen.size()), std::min<int64_t>(rows, kN / 3));
  }
}

TEST(TestData, InUseTakesRowsOnly) {
  Graph g;
  const NodeId table = g.Add(Input{"table", {DType::kF32, {50, 4}, Layout::Replicated()}});
  const NodeId i = g.Add(Input{"i", {DType::kI32, {kN}, Layout::Local()}});
  g.Add(Output{"y"}, {g.Add(Gather{0}, {table, i})});
  const TestData data(g, 3, 8, DataKind::kInUse);
  std::set<int64_t> seen;
  for (int64_t at = 0; at < kN; ++at)
    seen.insert(static_cast<int64_t>(data.At("i", 1, at).integer()));
  EXPECT_EQ(seen.size(), 50u);
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_EQ(*seen.rbegin(), 49);
  EXPECT_TRUE(data.SayWhichRows("i"));
  EXPECT_FALSE(data.SayWhichRows("table"));
}

TEST(TestData, ProductsAreAboutOne) {
  constexpr int64_t kTerms = 4096;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Graph g;
    const NodeId x = g.Add(Input{"x", {dtype, {kTerms, 20}, Layout::Local()}});
    const NodeId w = g.Add(Input{"w", {dtype, {30, kTerms}, Layout::Replicated()}});
    g.Add(Output{"y"}, {g.Add(MatMul{true, true}, {x, w})});
    const TestData data(g, 3, 2);
    double sum = 0;
    for (int64_t i = 0; i < 20; ++i) {
      for (int64_t j = 0; j < 30; ++j) {
        double y = 0;
        for (int64_t k = 0; k < kTerms; ++k)
          y += data.At("x", 1, k * 20 + i).real() * data.At("w", 1, j * kTerms + k).real();
        sum += y * y;
      }
    }
    const double root_mean_square = std::sqrt(sum / 600);
    EXPECT_TRUE(root_mean_square > 0.5 && root_mean_square < 4) << root_mean_square;
  }
}

TEST(TestData, IsWellConditioned) {
  for (DType dtype : kAllDTypes) {
    const TestData data(ProgramOf(dtype), 3, 8);
    int negative = 0;
    std::set<double> values;
    for (int64_t i = 0; i < kN; ++i) {
      const double g = data.At("g", 1, i).real(), m = data.At("m", 1, i).real();
      values.insert(g);
      negative += g < 0;
      if (dtype == DType::kBool) continue;
      ASSERT_GT(m, 0);
      const double most = IsFloat(dtype) ? 2 : 8;
      ASSERT_TRUE(std::abs(g) >= 0.5 && std::abs(g) <= most && m <= most)
          << Name(dtype) << " " << g << " " << m;
    }
    const bool has_sign = IsSigned(dtype);
    EXPECT_NEAR(negative, has_sign ? kN / 2 : 0, kN / 20) << Name(dtype);
    EXPECT_GT(values.size(), dtype == DType::kF32 ? 9900u : 1u);
  }
}

TEST(TestData, ScalarsThatCountAreSmallIntegers) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const double step = TestData(ProgramOf(DType::kF64), seed, 1).At("s", 0, 0).real();
    EXPECT_EQ(step, std::floor(step));
    EXPECT_TRUE(step >= 1 && step <= 8) << step;
    const double rate = TestData(ProgramOf(DType::kF32), seed, 1).At("s", 0, 0).real();
    EXPECT_TRUE(rate >= 0.5 && rate < 2) << rate;
  }
}

TEST(TestData, DiffersByRankTensorAndSeed) {
  const Graph g = ProgramOf(DType::kF32);
  const TestData data(g, 3, 8), other(g, 4, 8);
  int same_rank = 0, same_tensor = 0, same_seed = 0, same_shifted = 0;
  for (int64_t i = 0; i + 4096 < kN; ++i) {
    same_rank += data.At("g", 0, i) == data.At("g", 1, i);
    same_tensor += std::abs(data.At("g", 0, i).real()) == data.At("m", 0, i);
    same_seed += data.At("g", 0, i) == other.At("g", 0, i);
    same_shifted += data.At("g", 0, i) == data.At("g", 0, i + 4096);
  }
  EXPECT_LE(same_rank + same_tensor + same_seed + same_shifted, 10);
  EXPECT_EQ(data.At("m", 0, 17), data.At("m", 1, 17)) << "not local: the same on all ranks";
}

TEST(TestData, FindsTheFirstChange) {
  const TestData data(ProgramOf(DType::kF16), 3, 8);
  const Part part = PartOf({DType::kF16, {kN}, Layout::Local()}, 2, 1);
  std::vector<char> storage = Filled(data, DType::kF16, "g", 1, Layout::Local(), 2);
  EXPECT_EQ(data.FirstChange("g", 1, part, storage.data()), -1);
  storage[2 * 7777 + 1] ^= 1;
  storage[2 * 9000] ^= 1;
  EXPECT_EQ(data.FirstChange("g", 1, part, storage.data()), 7777);
  EXPECT_EQ(data.FirstChange("g", 0, part, storage.data()), 0) << "another rank's data";
}

TEST(TestData, OperandsOfProductsHaveSignsOfTheirOwn) {
  Graph g;
  const NodeId a = g.Add(Input{"a", {DType::kF16, {2, 4096}, Layout::Replicated()}});
  const NodeId b = g.Add(State{"b", {DType::kF32, {4096, 2}, Layout::Auto()}});
  g.Add(Output{"y"}, {g.Add(MatMul{}, {a, g.Add(Cast{DType::kF16}, {b})})});
  const TestData data(g, 3, 8);
  int positive = 0, same_as_block_before = 0;
  for (int64_t i = 0; i < 4096; ++i) {
    positive += data.At("a", 0, i).real() * data.At("b", 0, i).real() > 0;
    same_as_block_before += data.At("a", 0, i).real() * data.At("a", 0, i + 4096).real() > 0;
  }
  EXPECT_NEAR(positive, 2048, 256);
  EXPECT_NEAR(same_as_block_before, 2048, 256);
}

TEST(TestData, KindsAreWhatTheySay) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const Graph g = ProgramOf(dtype);
    const auto tally = [&](DataKind kind, const std::string& tensor) {
      const TestData data(g, 3, 8, kind);
      std::map<std::string, int> found;
      for (int64_t i = 0; i < kN; ++i) {
        const double x = data.At(tensor, 1, i).real();
        ++found[std::isnan(x)                                  ? "nan"
                : std::isinf(x)                                ? "inf"
                : x == 0                                       ? "zero"
                : std::abs(x) == MinSubnormal(dtype)           ? "least"
                : std::abs(x) == MaxFinite(dtype)              ? "greatest"
                : std::abs(x) >= 0.5 && std::abs(x) <= 2       ? "ordinary"
                : std::abs(x) < 1.0 / 64 && x > 1.0 / 1024 / 4 ? "small"
                                                               : "other"];
        EXPECT_FALSE(tensor == "m" && x < 0) << Name(kind) << " " << x;
      }
      return found;
    };
    EXPECT_EQ(tally(DataKind::kOrdinary, "m")["ordinary"], kN);
    EXPECT_EQ(tally(DataKind::kSmall, "m")["small"], kN);
    std::map<std::string, int> special = tally(DataKind::kSpecial, "g");
    for (const char* kind : {"nan", "inf", "zero", "least", "greatest"})
      EXPECT_GT(special[kind], kN / 200) << Name(dtype) << " " << kind;
    EXPECT_GT(special["ordinary"], kN / 10 * 9);
    std::map<std::string, int> wide = tally(DataKind::kWide, "g");
    EXPECT_GT(wide["zero"], kN / 64);
    EXPECT_GT(wide["other"], kN / 10) << Name(dtype);
    EXPECT_EQ(wide["nan"] + wide["inf"], 0);
  }
}

TEST(TestData, SpecialIntegersAreTheLimitsAndAnyBits) {
  for (DType dtype : kAllDTypes) {
    if (!IsInteger(dtype)) continue;
    const TestData data(ProgramOf(dtype), 3, 8, DataKind::kSpecial);
    int least = 0, greatest = 0, other = 0;
    for (int64_t i = 0; i < kN; ++i) {
      const Number x = data.At("g", 1, i);
      least += x == Least(dtype);
      greatest += x == Greatest(dtype);
      other += std::abs(x.real()) > 8 && !(x == Least(dtype)) && !(x == Greatest(dtype));
    }
    EXPECT_GT(least, kN / 200) << Name(dtype);
    EXPECT_GT(greatest, kN / 200) << Name(dtype);
    EXPECT_GT(other, kN / 200) << Name(dtype);
  }
}

TEST(TestData, HasNoNaNsWhereTheCallerExcludesThem) {
  for (DType dtype : kAllDTypes) {
    if (!IsFloat(dtype)) continue;
    const TestData data(ProgramOf(dtype), 7, 4, DataKind::kSpecial, Nans::kNone);
    int nans = 0, infinities = 0;
    for (int64_t i = 0; i < kN; ++i) {
      nans += data.At("g", 1, i).is_nan() ? 1 : 0;
      infinities += std::isinf(data.At("g", 1, i).real()) ? 1 : 0;
    }
    EXPECT_EQ(nans, 0) << Name(dtype);
    EXPECT_EQ(infinities > kN / 200, HasInfinity(dtype)) << Name(dtype);
  }
}

TEST(TestData, EachTensorIsZeroInOneOfTwo) {
  int both = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::map<std::string, int> zero;
    for (const DataKind kind : {DataKind::kZeros, DataKind::kOtherZeros}) {
      const TestData data(ProgramOf(DType::kF32), seed, 4, kind);
      EXPECT_NE(data.At("s", 0, 0), 0) << "a scalar";
      for (const char* tensor : {"g", "m"}) zero[tensor] += data.At(tensor, 1, 7) == 0;
      both += data.At("g", 1, 7) == 0 && data.At("m", 1, 7) == 0;
    }
    EXPECT_EQ(zero["g"], 1);
    EXPECT_EQ(zero["m"], 1);
  }
  EXPECT_GT(both, 2);
  EXPECT_LT(both, 18);
}

TEST(TestData, ALoneElementIsOnOneRank) {
  const Graph g = ProgramOf(DType::kF32);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const TestData data(g, seed, 4, seed % 2 == 0 ? DataKind::kLoneNaN : DataKind::kLoneInfinity);
    int special = 0;
    for (int rank = 0; rank < 4; ++rank) {
      for (int64_t i = 0; i < kN; ++i) {
        special += !data.At("g", rank, i).is_finite();
        special += rank == 0 && !data.At("m", rank, i).is_finite();
      }
    }
    EXPECT_EQ(special, 1) << seed;
  }
}

}  // namespace
}  // namespace coconet
