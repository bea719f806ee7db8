#include "autotune/search/coverage.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(Coverage, DrawsOfALargeSpace) {
  EXPECT_EQ(DrawsFor(1000000), 59) << "0.95 ^ 59 < 5 %";
  EXPECT_EQ(DrawsFor(0), 0);
  EXPECT_EQ(DrawsFor(1), 1);
  EXPECT_EQ(DrawsFor(10), 10) << "of one better one in ten, 9 draws miss one time in ten";
  for (int n = 1; n < 3000; ++n) {
    EXPECT_LE(DrawsFor(n), n);
    EXPECT_LE(DrawsFor(n), 59) << n;
  }
}

// The rule does what it says: of 400 searches that stop by draws alone, at most 5 % (and their
// chance) leave more than 1 in 20 of the variants better than the best of the draws.
TEST(Coverage, DrawsFindTheBestTwentieth) {
  std::mt19937_64 random(4);
  int bad = 0;
  for (int search = 0; search < 400; ++search) {
    std::vector<int> ranks(300);
    for (int i = 0; i < 300; ++i) ranks[i] = i;
    std::shuffle(ranks.begin(), ranks.end(), random);
    const int best = *std::min_element(ranks.begin(), ranks.begin() + DrawsFor(300));
    bad += best >= 300 / 20;
  }
  EXPECT_LE(bad, 400 / 20 + 14) << "three standard deviations";
}

TEST(Coverage, PatienceEndsAfterPromisesInVain) {
  Coverage coverage({}, 100);
  for (int i = 0; i < Coverage::kPatience - 1; ++i) coverage.Tried(/*drawn=*/false, 100);
  EXPECT_FALSE(coverage.IsOutOfPatience());
  coverage.Tried(/*drawn=*/true, 98);
  EXPECT_FALSE(coverage.IsOutOfPatience()) << "a draw is no promise";
  coverage.Tried(/*drawn=*/false, 98);
  EXPECT_TRUE(coverage.IsOutOfPatience()) << "2 % are no gain";
  coverage.Tried(/*drawn=*/false, 96);
  EXPECT_FALSE(coverage.IsOutOfPatience());
  EXPECT_EQ(coverage.drawn(), 1);
  EXPECT_EQ(coverage.since_gain(), 0);
}

TEST(Coverage, GoesOnFromEarlierRuns) {
  const Coverage coverage({.drawn = 40, .since_gain = 60}, 100);
  EXPECT_TRUE(coverage.IsOutOfPatience());
  EXPECT_TRUE(coverage.NeedsDraws(1000));
  EXPECT_FALSE(Coverage({.drawn = 59}, 100).NeedsDraws(1000));
  EXPECT_FALSE(Coverage({}, 100).NeedsDraws(0));
}

}  // namespace
}  // namespace coconet
