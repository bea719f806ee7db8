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

}  // namespace
}  // namespace coconet
