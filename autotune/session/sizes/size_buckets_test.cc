#include "autotune/session/sizes/size_buckets.h"

#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;

TEST(GridOf, HasBothEndsAndPowersOfTwoBetween) {
  EXPECT_THAT(GridOf({1024, 1 << 16}, 4), ElementsAre(1024, 4096, 16384, 65536));
  EXPECT_THAT(GridOf({1000, 70000}, 4), ElementsAre(1000, 2048, 8192, 32768, 70000));
  EXPECT_THAT(GridOf({7, 7}, 4), ElementsAre(7));
  EXPECT_THAT(GridOf({7, 8}, 4), ElementsAre(7, 8));
  EXPECT_THAT(GridOf({1, 3}, 4), ElementsAre(1, 3));
}

TEST(GridOf, AscendsWithStepsOfAboutTheFactor) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const int64_t lo = 1 + static_cast<int64_t>(random() >> (20 + random() % 43));
    const int64_t hi =
        std::min(lo + static_cast<int64_t>(random() >> (17 + random() % 46)), kGreatestSize);
    if (hi < lo) continue;
    const std::vector<int64_t> grid = GridOf({lo, hi}, 4);
    EXPECT_EQ(grid.front(), lo);
    EXPECT_EQ(grid.back(), hi);
    for (size_t p = 1; p < grid.size(); ++p) {
      EXPECT_LT(grid[p - 1], grid[p]);
      EXPECT_LE(static_cast<double>(grid[p]) / static_cast<double>(grid[p - 1]), 8.01);
    }
  }
}

TEST(MiddleOf, IsBetweenTheTwoIfThereIsASize) {
  for (int64_t lo = 1; lo < 300; ++lo) {
    EXPECT_EQ(MiddleOf(lo, lo + 1), lo);
    for (int64_t hi = lo + 2; hi < 320; ++hi) {
      EXPECT_GT(MiddleOf(lo, hi), lo) << lo << " " << hi;
      EXPECT_LT(MiddleOf(lo, hi), hi) << lo << " " << hi;
    }
  }
  EXPECT_EQ(MiddleOf(1024, 4096), 2048);
}

TEST(FindCrossover, FindsWhereTimesCross) {
  // The lower variant takes 10 + n / 100 us, the upper one 50 + n / 400: they cross at 5333.
  int timed = 0;
  const auto ratio = [&](int64_t n) -> absl::StatusOr<double> {
    ++timed;
    return (10 + static_cast<double>(n) / 100) / (50 + static_cast<double>(n) / 400);
  };
  const Changeover found = FindCrossover(1024, 65536, ratio).value();
  EXPECT_GE(found.at, 5333 / 1.2);
  EXPECT_LE(found.at, 5333 * 1.2);
  EXPECT_LE(timed, 6);
}

TEST(FindCrossover, EndsWhereTheTwoTakeAsLong) {
  int timed = 0;
  const Changeover found = FindCrossover(1024, 16384, [&](int64_t) -> absl::StatusOr<double> {
                             ++timed;
                             return 1.01;
                           }).value();
  EXPECT_EQ(found.at, 4096);
  EXPECT_EQ(found.bracket, 16);
  EXPECT_EQ(timed, 1);
}

TEST(FindCrossover, IsWithinTheBracketWhateverIsTimed) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const auto lo = 1 + static_cast<int64_t>(random() % 100000);
    const int64_t hi = lo + 1 + static_cast<int64_t>(random() % 100000);
    const Changeover found = FindCrossover(lo, hi, [&](int64_t n) -> absl::StatusOr<double> {
                               EXPECT_GT(n, lo);
                               EXPECT_LT(n, hi);
                               return std::exp2(static_cast<double>(random() % 200) / 100 - 1);
                             }).value();
    EXPECT_GT(found.at, lo);
    EXPECT_LE(found.at, hi);
    EXPECT_GE(found.bracket, 1);
  }
}

TEST(FindCrossover, PassesOnTheErrorOfATiming) {
  EXPECT_EQ(FindCrossover(1, 100, [](int64_t) { return absl::CancelledError("x"); }).status(),
            absl::CancelledError("x"));
}

TEST(FewestChanges, KeepsAVariantAsLongAsItTies) {
  // Variant 1 is never the fastest, and nearly so at all but the last point.
  const std::vector<std::vector<double>> us = {{10, 10.1, 0}, {20.3, 20.1, 20}, {40, 50, 39.9}};
  EXPECT_THAT(FewestChanges(us, 1.02), ElementsAre(0, 0, 0));
  EXPECT_THAT(FewestChanges(us, 1.012), ElementsAre(1, 1, 2));
  EXPECT_THAT(FewestChanges(us, 1), ElementsAre(0, 2, 2));
}

TEST(BucketOf, FindsTheBoxWithTheSizes) {
  std::vector<SizeBucket> buckets(3);
  buckets[0].box = {{"K", {8, 8}}, {"N", {1, 100}}};
  buckets[1].box = {{"K", {8, 8}}, {"N", {101, 1000}}};
  buckets[2].box = {{"K", {9, 64}}, {"N", {1, 1000}}};
  EXPECT_EQ(BucketOf(buckets, {{"K", 8}, {"N", 100}}), 0);
  EXPECT_EQ(BucketOf(buckets, {{"K", 8}, {"N", 101}}), 1);
  EXPECT_EQ(BucketOf(buckets, {{"K", 64}, {"N", 7}}), 2);
  EXPECT_EQ(BucketOf(buckets, {{"K", 65}, {"N", 7}}), -1);
  EXPECT_EQ(BucketOf(buckets, {{"N", 7}}), -1);
  EXPECT_EQ(BucketOf(buckets, {{"K", 8}, {"N", {7, 8}}}), -1);
  EXPECT_EQ(BucketOf(buckets, {{"K", 8}, {"M", 7}}), -1);
  EXPECT_EQ(NearestBucket(buckets, {{"K", 8}, {"N", 5000}}), 1);
  EXPECT_EQ(NearestBucket(buckets, {{"K", 500}, {"N", 50}}), 2);
  EXPECT_EQ(NearestBucket(buckets, {{"M", 8}}), -1);
}

TEST(FirstUncovered, FindsSizesThatNoBucketHas) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto range = [&](int64_t most) {
    const auto a = 1 + static_cast<int64_t>(random() % most), b = 1 + int64_t(random() % most);
    return SizeRange{std::min(a, b), std::max(a, b)};
  };
  for (int i = 0; i < 2000; ++i) {
    std::vector<SizeBucket> buckets(random() % 6);
    for (SizeBucket& bucket : buckets) bucket.box = {{"K", range(4)}, {"N", range(8)}};
    const SizeRanges ranges = {{"K", range(4)}, {"N", range(8)}};
    const std::vector<SizeBucket> within = BucketsWithin(buckets, ranges);
    const std::optional<SizeRanges> found = FirstUncovered(ranges, within);
    bool covered = true;
    for (int64_t k = ranges.at("K").lo; k <= ranges.at("K").hi; ++k) {
      for (int64_t n = ranges.at("N").lo; n <= ranges.at("N").hi; ++n) {
        const Sizes sizes = {{"K", k}, {"N", n}};
        const bool has = BucketOf(within, sizes) >= 0;
        EXPECT_EQ(has, BucketOf(buckets, sizes) >= 0);
        covered = covered && has;
        if (found.has_value() && Contains(*found, sizes)) {
          EXPECT_FALSE(has);
        }
      }
    }
    EXPECT_EQ(covered, !found.has_value());
  }
}

}  // namespace
}  // namespace coconet
