#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "coconet/reference/bounded.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

BoundedLine LineOf(std::vector<double> value, std::vector<double> error = {}) {
  BoundedLine line;
  line.value = std::move(value);
  line.error = std::move(error);
  return line;
}

BoundedLine Line(size_t count, const std::function<double()>& value) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(value()));
  return LineOf(values);
}

/// The sum of the products in single precision, in `lanes` partial sums.
double DotInLanes(const BoundedLine& a, const BoundedLine& b, size_t lanes, bool fused) {
  std::vector<float> sums(lanes);
  for (size_t i = 0; i < a.value.size(); ++i) {
    const auto x = static_cast<float>(a.value[i]), y = static_cast<float>(b.value[i]);
    float& sum = sums[i % lanes];
    sum = fused ? std::fma(x, y, sum) : sum + x * y;
  }
  float sum = 0;
  for (float part : sums) sum += part;
  return sum;
}

TEST(BoundedDot, HoldsForSumsInAnyOrder) {
  std::mt19937_64 random(20);
  std::uniform_real_distribution<double> any(-2, 2), positive(0.5, 2);
  std::bernoulli_distribution coin;
  const std::function<double()> kinds[] = {
      [&] { return any(random); }, [&] { return positive(random); }, [] { return 0.1; },
      [&] { return coin(random) ? 0.1 : 0.7; }, [&] { return coin(random) ? 0 : 1.0 / 3; }};
  for (const auto& left : kinds) {
    for (const auto& right : kinds) {
      for (const size_t count : {1, 2, 7, 100, 1000, 20000}) {
        for (int again = 0; again < 5; ++again) {
          const BoundedLine a = Line(count, left), b = Line(count, right);
          const BoundedValue dot = BoundedDot(DType::kF32, a, b);
          for (const size_t lanes : {1, 4, 16, 256}) {
            for (const bool fused : {false, true})
              EXPECT_LE(std::fabs(DotInLanes(a, b, lanes, fused) - dot.value.real()), dot.error)
                  << count << " terms in " << lanes << " lanes";
          }
        }
      }
    }
  }
}

/// The sum of products as tensor cores add those of 8-bit floats: 32 at once and the sum before, of
/// which each keeps 13 bits behind the highest one of the greatest.
double DotByTensorCores(const BoundedLine& a, const BoundedLine& b) {
  double sum = 0;
  for (size_t i = 0; i < a.value.size(); i += 32) {
    std::vector<double> terms = {sum};
    for (size_t k = i; k < std::min(i + 32, a.value.size()); ++k)
      terms.push_back(a.value[k] * b.value[k]);
    double greatest = 0;
    for (double term : terms) greatest = std::max(greatest, std::fabs(term));
    if (greatest == 0) continue;
    const double unit = std::ldexp(1.0, std::ilogb(greatest) - 13);
    sum = 0;
    for (double term : terms) sum += std::trunc(term / unit) * unit;
  }
  return sum;
}

TEST(BoundedDot, HoldsForTensorCoresThatKeepSomeBits) {
  std::mt19937_64 random(21);
  std::uniform_real_distribution<double> any(-2, 2), positive(0.5, 2);
  const std::function<double()> kinds[] = {
      [&] { return Stored(DType::kF8E4M3, any(random)).real(); },
      [&] { return Stored(DType::kF8E5M2, any(random)).real(); },
      [&] { return Stored(DType::kF8E4M3, positive(random)).real(); }};
  double most = 0;
  for (const auto& left : kinds) {
    for (const auto& right : kinds) {
      for (const size_t count : {1, 2, 33, 100, 1000, 5000}) {
        const BoundedLine a = Line(count, left), b = Line(count, right);
        const BoundedValue dot = BoundedDot(DType::kF32, a, b, /*of_floats8=*/true);
        const double off = std::fabs(DotByTensorCores(a, b) - dot.value.real());
        EXPECT_LE(off, dot.error) << count;
        most = std::max(most, off / std::max(dot.error, 1e-30));
        for (const size_t lanes : {1, 16})
          EXPECT_LE(std::fabs(DotInLanes(a, b, lanes, true) - dot.value.real()), dot.error);
      }
    }
  }
  EXPECT_GT(most, 0.05);  // the bound is not idle
  const BoundedLine ones = Line(1000, [] { return 1; }), twos = Line(1000, [] { return 2; });
  EXPECT_EQ(BoundedDot(DType::kF32, ones, twos, true).error, 0);
}

TEST(BoundedDot, FindsAMissingTermOfALongSum) {
  std::mt19937_64 random(21);
  std::uniform_real_distribution<double> magnitude(0.5, 2);
  std::bernoulli_distribution coin;
  const auto value = [&] { return coin(random) ? magnitude(random) : -magnitude(random); };
  for (const size_t count : {1024, 16384, 65536}) {
    const BoundedLine a = Line(count, value), b = Line(count, value);
    EXPECT_LT(BoundedDot(DType::kF32, a, b).error, 0.25) << count;  // the least term
  }
}

TEST(BoundedDot, IsExactWherePartialSumsNeedNoRounding) {
  const auto error = [](const BoundedLine& a, const BoundedLine& b) {
    return BoundedDot(DType::kF32, a, b).error;
  };
  EXPECT_EQ(error(LineOf({3, 0.5, -7}), LineOf({5, 2, 0})), 0);
  EXPECT_EQ(error(LineOf({0, 0}), LineOf({5, 0.1})), 0);
  EXPECT_EQ(error(LineOf({5, 0.1}), LineOf({0, 0})), 0);
  EXPECT_GT(error(LineOf({0, 0}, {0, 1e-9}), LineOf({5, 0.1})), 0);
  EXPECT_GT(error(LineOf({0x1p20, 1}), LineOf({0x1p5, 0.5})), 0);
}

TEST(BoundedDot, HasABoundWhereOnlyTheMagnitudesExceedTheTypeOfTheResult) {
  const auto error = [](double a, double b) {
    return BoundedDot(DType::kF16, LineOf({a, a, 1}), LineOf({b, -b, 1})).error;
  };
  EXPECT_LT(error(300, 300), 0.1);  // 90000 is beyond f16, the sum of 1 is not
  EXPECT_EQ(BoundedDot(DType::kF16, LineOf({300}), LineOf({300})).error, kInfinity);
  EXPECT_EQ(error(1e20, 1e20), kInfinity);  // beyond f32: a partial sum may overflow
}

TEST(BoundedDot, TakesSubnormalNumbersOfBf16AsZeroOrAsTheyAre) {
  const double subnormal = 0x1p-130, greatest = 0x1p127;
  const BoundedLine small = LineOf({subnormal, 1}), great = LineOf({greatest, 1}),
                    infinite = LineOf({kInfinity, 1});
  EXPECT_EQ(BoundedDot(DType::kBF16, small, infinite).error, kInfinity);  // 0 * inf is NaN
  EXPECT_GE(BoundedDot(DType::kBF16, small, great).error, 0.125);
  EXPECT_EQ(BoundedDot(DType::kF32, small, infinite).error, 0);
  EXPECT_LT(BoundedDot(DType::kF32, small, great).error, 1e-5);
}

TEST(BoundedDot, KnowsWhatFollowsFromInfinitiesAndNaNs) {
  const auto dot = [](const BoundedLine& a, const BoundedLine& b) {
    return BoundedDot(DType::kF32, a, b);
  };
  EXPECT_EQ(dot(LineOf({kInfinity, 1}), LineOf({2, 1})).value, kInfinity);
  EXPECT_EQ(dot(LineOf({kInfinity, 1}), LineOf({2, 1})).error, 0);
  EXPECT_TRUE(dot(LineOf({kInfinity, 1}), LineOf({0, 1})).value.is_nan());
  EXPECT_EQ(dot(LineOf({kInfinity, 1}), LineOf({0, 1})).error, 0);
  EXPECT_TRUE(dot(LineOf({kInfinity, kInfinity}), LineOf({1, -1})).value.is_nan());
  EXPECT_EQ(dot(LineOf({kInfinity, kInfinity}), LineOf({1, -1})).error, 0);
  EXPECT_EQ(dot(LineOf({std::nan(""), 1}), LineOf({0, 1})).error, 0);
  // Whether the other factor is 0 is in doubt.
  EXPECT_EQ(dot(LineOf({kInfinity}, {0}), LineOf({0.1}, {0.2})).error, kInfinity);
  EXPECT_EQ(dot(LineOf({kInfinity}, {0}), LineOf({0.3}, {0.2})).error, 0);
}

TEST(BoundedScaled, MultipliesEachElementByTheScaleOfItsBlock) {
  const BoundedLine scaled = BoundedScaled(LineOf({1, -2, 3, 5, 0}), LineOf({0.5, 0.3, 7}), 2);
  EXPECT_EQ(scaled.value, std::vector<double>({0.5, -1, 3 * 0.3, 5 * 0.3, 0}));
  EXPECT_EQ(scaled.error[0], 0);  // a power of 2 rounds nothing
  EXPECT_EQ(scaled.error[1], 0);
  EXPECT_NEAR(scaled.error[3], 1.5 * 0x1p-24, 0x1p-40);
  EXPECT_EQ(scaled.error[4], 0);
  const BoundedLine off = BoundedScaled(LineOf({4}), LineOf({0.5}, {0.25}), 1);
  EXPECT_GE(off.error[0], 1);
}

TEST(BoundedScaled, OfInfiniteScalesIsNotDetermined) {
  const auto error = [](double element, double scale) {
    return BoundedScaled(LineOf({element}), LineOf({scale}), 1).error[0];
  };
  EXPECT_EQ(error(1, kInfinity), kInfinity);
  EXPECT_EQ(error(0, kInfinity), kInfinity);
  EXPECT_EQ(error(1, std::nan("")), 0);
  EXPECT_EQ(error(std::nan(""), 2), 0);
  EXPECT_EQ(error(kInfinity, -2), 0);
  EXPECT_EQ(error(448, 1e38), kInfinity);  // hosts multiply in f32
}

}  // namespace
}  // namespace coconet
