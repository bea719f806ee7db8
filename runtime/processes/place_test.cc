#include "runtime/processes/place.h"

#include "gtest/gtest.h"

namespace coconet {
namespace {

using Cores = std::vector<int>;

TEST(OwnCores, AreDistinctWhereTheyCanBe) {
  EXPECT_EQ(OwnCores({{0, 1, 2}, {0, 1, 2}}), (Cores{0, 1}));       // not confined
  EXPECT_EQ(OwnCores({{3}, {1}}), (Cores{3, 1}));                   // one core per rank
  EXPECT_EQ(OwnCores({{0, 1}, {4, 5}, {0, 1}}), (Cores{0, 4, 1}));  // one socket per rank
  EXPECT_EQ(OwnCores({{0}, {0, 1}}), (Cores{0, 1}));
}

TEST(OwnCores, AreSharedEvenlyWhereTheyAreFew) {
  EXPECT_EQ(OwnCores({{0, 1}, {0, 1}, {0, 1}, {0, 1}}), (Cores{0, 1, 0, 1}));
}

TEST(CoresOfNode, AreTheRanksOwnThenTheOthers) {
  EXPECT_EQ(CoresOfNode({{0, 1, 2}, {0, 1, 2}}, {0, 1}), (Cores{0, 1, 2}));
  EXPECT_EQ(CoresOfNode({{0, 1}, {4, 5}, {0, 1}}, {0, 4, 1}), (Cores{0, 4, 1, 5}));
  EXPECT_EQ(CoresOfNode({{0, 1}, {0, 1}, {0, 1}}, {0, 1, 0}), (Cores{0, 1}));
}

}  // namespace
}  // namespace coconet
