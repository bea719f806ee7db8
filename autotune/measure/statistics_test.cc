#include "autotune/measure/statistics.h"

#include <cmath>
#include <random>

#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(Median, IsTheMiddleWhateverTheOrder) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(Median({}), 0);
}

// The ranks of the interval are tabulated, e.g. in Hahn & Meeker, Statistical Intervals: n =
// 6: 1..6, 10: 2..9, 20: 6..15, 100: 40..61.
TEST(Summarize, TakesTheTabulatedOrderStatistics) {
  const struct {
    int n, low, high;
  } rows[] = {{1, 1, 1}, {5, 1, 5}, {6, 1, 6}, {9, 2, 8}, {10, 2, 9}, {20, 6, 15}, {100, 40, 61}};
  for (const auto& row : rows) {
    std::vector<double> samples;
    for (int i = row.n; i >= 1; --i) samples.push_back(i);
    const Timing t = Summarize(samples);
    EXPECT_EQ(t.low_us, row.low) << row.n;
    EXPECT_EQ(t.high_us, row.high) << row.n;
    EXPECT_EQ(t.samples, row.n);
    EXPECT_EQ(t.median_us, (row.n + 1) / 2.0);
  }
}

TEST(Summarize, ExactAndApproximateRanksMeet) {
  auto width = [](int n) {
    std::vector<double> samples(n);
    for (int i = 0; i < n; ++i) samples[i] = i;
    const Timing t = Summarize(samples);
    return t.high_us - t.low_us;
  };
  EXPECT_NEAR(width(1000), width(1001), 2);
}

TEST(Summarize, CoversTheTrueMedianNineteenTimesOfTwenty) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> skewed(0, 1);  // median 1
  int covered = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples(20);
    for (double& s : samples) s = skewed(random);
    const Timing t = Summarize(samples);
    if (t.low_us <= 1 && 1 <= t.high_us) ++covered;
  }
  EXPECT_GE(covered, 0.945 * kTrials);
}

TEST(Noise, IsHalfTheIntervalOverTheMedian) {
  const Timing noisy{.median_us = 104, .low_us = 98, .high_us = 110, .samples = 20};
  EXPECT_EQ(Noise(noisy), 6.0 / 104);
  EXPECT_EQ(Noise({}), 0);
}

}  // namespace
}  // namespace coconet
