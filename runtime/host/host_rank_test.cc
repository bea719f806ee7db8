#include "runtime/host/host_rank.h"

#include "gtest/gtest.h"

namespace coconet {
namespace {

using Cores = std::vector<int>;

TEST(CoresOfBlocks, TakesOwnCoreFirstThenThoseThatNoRankHas) {
  EXPECT_EQ(CoresOfBlocks({0, 1, 2, 3}, 0, 2), (Cores{0, 2}));
  EXPECT_EQ(CoresOfBlocks({0, 1, 2, 3}, 1, 2), (Cores{1, 3}));
  EXPECT_EQ(CoresOfBlocks({4, 5, 6}, 0, 1), (Cores{4, 5, 6}));
}

TEST(CoresOfBlocks, SharesCoresWhereTheyAreFew) {
  EXPECT_EQ(CoresOfBlocks({0, 1}, 1, 2), (Cores{1}));
  EXPECT_EQ(CoresOfBlocks({0, 1}, 3, 4), (Cores{1}));
  EXPECT_EQ(CoresOfBlocks({0, 1, 2}, 1, 2), (Cores{1, 0, 2}));
}

using Sharing = std::vector<unsigned char>;

TEST(SharingCores, NobodyDoesWhereThereAreEnough) {
  EXPECT_EQ(SharingCores({0, 1, 2, 3}, 0, 4, 1, true), (Sharing{0, 0, 0, 0}));
  EXPECT_EQ(SharingCores({0, 1, 2, 3}, 1, 2, 2, false), (Sharing{0, 0}));
}

TEST(SharingCores, IsAboutCoresWhereRanksArePinned) {
  EXPECT_EQ(SharingCores({0, 1}, 1, 4, 1, true), (Sharing{0, 1, 0, 1}));
  EXPECT_EQ(SharingCores({0, 1, 2}, 0, 4, 1, true), (Sharing{1, 0, 0, 1}));
  // Each rank's surplus blocks run on its own core.
  EXPECT_EQ(SharingCores({0, 1}, 0, 2, 2, true), (Sharing{1, 0}));
  EXPECT_EQ(SharingCores({0, 1, 2}, 0, 2, 2, true), (Sharing{1, 1}));
}

TEST(SharingCores, AnybodyMayWhereTheyAreNotPinned) {
  EXPECT_EQ(SharingCores({0, 1}, 0, 3, 1, false), (Sharing{1, 1, 1}));
}

}  // namespace
}  // namespace coconet
