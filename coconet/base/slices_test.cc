#include "coconet/base/slices.h"

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

std::vector<Range> Parts(const Slicing& slicing) {
  std::vector<Range> parts;
  for (int rank = 0; rank < slicing.ranks; ++rank) parts.push_back(slicing.Of(rank));
  return parts;
}

TEST(Slices, LargeOnesStartAtLines) {
  EXPECT_EQ(Parts(SliceExtent(4096, 2)), (std::vector<Range>{{0, 2048}, {2048, 4096}}));
  EXPECT_EQ(Parts(SliceExtent(4097, 2)), (std::vector<Range>{{0, 2112}, {2112, 4097}}));
  EXPECT_EQ(SliceExtent(4097, 2).padded(), 4224);
}

TEST(Slices, SmallOnesStayBalanced) {
  EXPECT_EQ(Parts(SliceExtent(10, 4)), (std::vector<Range>{{0, 3}, {3, 6}, {6, 9}, {9, 10}}));
  EXPECT_EQ(SliceExtent(62, 2).per, 31);
  EXPECT_EQ(SliceExtent(66, 2).per, 34);     // 33, rounded up to a multiple of 2
  EXPECT_EQ(SliceExtent(1000, 2).per, 512);  // 500, rounded up to a multiple of 16
  EXPECT_EQ(SliceExtent(2048, 2).per, 1024);
}

TEST(Slices, MoreRanksThanElementsLeaveSomeEmpty) {
  EXPECT_EQ(Parts(SliceExtent(1, 3)), (std::vector<Range>{{0, 1}, {1, 1}, {1, 1}}));
  EXPECT_EQ(Parts(SliceExtent(5, 4)), (std::vector<Range>{{0, 2}, {2, 4}, {4, 5}, {5, 5}}));
}

TEST(Slices, NothingIsCutIntoNothing) {
  EXPECT_EQ(Parts(SliceExtent(0, 2)), (std::vector<Range>{{0, 0}, {0, 0}}));
  EXPECT_EQ(SliceExtent(0, 2).padded(), 0);
}

TEST(Slices, PartsCoverTheExtentOnceAndAreNearlyEqual) {
  for (int64_t extent : {0, 1, 63, 64, 65, 1000, 4097, 100003}) {
    for (int ranks : {1, 2, 3, 4, 7, 8}) {
      const Slicing slicing = SliceExtent(extent, ranks);
      const int64_t least = (extent + ranks - 1) / ranks;
      int64_t end = 0;
      for (const Range& part : Parts(slicing)) {
        EXPECT_EQ(part.begin, end);
        EXPECT_LE(part.size(), slicing.per);
        end = part.end;
      }
      EXPECT_EQ(end, extent);
      EXPECT_GE(slicing.padded(), extent);
      EXPECT_LE(slicing.per, least + least / 16);
      if (least >= 16 * kSliceAlign) {
        EXPECT_EQ(slicing.per % kSliceAlign, 0);
      }
    }
  }
}

TEST(Slices, SharesOfWeightsAreWholeOrCutWhereARankHasItsPart) {
  // With the weights 3, 5 and 4, the ranks get [0, 6) and [6, 12).
  EXPECT_EQ(Parts(SliceShare(100, 2, {0, 3, 12})), (std::vector<Range>{{0, 100}, {100, 100}}));
  EXPECT_EQ(Parts(SliceShare(100, 2, {3, 5, 12})), (std::vector<Range>{{0, 60}, {60, 100}}));
  EXPECT_EQ(Parts(SliceShare(100, 2, {8, 4, 12})), (std::vector<Range>{{0, 0}, {0, 100}}));
  EXPECT_EQ(Parts(SliceShare(100, 2, {12, 0, 12})), (std::vector<Range>{{0, 0}, {0, 100}}));
  EXPECT_EQ(Parts(SliceShare(100, 2, {0, 0, 12})), (std::vector<Range>{{0, 100}, {100, 100}}));
  EXPECT_EQ(Parts(SliceShare(10, 2, {})), Parts(SliceExtent(10, 2)));
  EXPECT_EQ(Parts(SliceShare(0, 2, {3, 5, 12})), (std::vector<Range>{{0, 0}, {0, 0}}));
}

TEST(Slices, SharesOfWeightsCoverTheExtentAndAreNearlyEqual) {
  std::mt19937_64 random(std::random_device{}());
  for (int turn = 0; turn < 20000; ++turn) {
    const auto up_to = [&](int64_t most) {
      return std::uniform_int_distribution<int64_t>(0, most)(random);
    };
    const int64_t extent = up_to(turn % 2 == 0 ? 300 : 100000), most = turn % 3 == 0 ? 5 : 1 << 20;
    const int ranks = 1 + static_cast<int>(up_to(16));
    Share share{up_to(most), up_to(most)};
    share.of = share.before + share.own + up_to(most);
    const Slicing slicing = SliceShare(extent, ranks, share);
    SCOPED_TRACE(absl::StrCat("extent ", extent, ", ", ranks, " ranks, share ", share.before, "+",
                              share.own, "/", share.of));
    int64_t end = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const Range part = slicing.Of(rank);
      ASSERT_EQ(part.begin, end);
      ASSERT_GE(part.size(), 0);
      ASSERT_LE(part.size(), slicing.per);
      end = part.end;
      if (part.size() == 0) continue;
      ASSERT_EQ(slicing.OwnerOf(part.begin), rank);
      ASSERT_EQ(slicing.OwnerOf(part.end - 1), rank);
      if (share.of == 0) continue;
      // The weight of the part, but for the granules that its two cuts, and those of the ranks
      // between, are rounded to.
      const double weight = static_cast<double>(part.size()) * static_cast<double>(share.own) /
                            static_cast<double>(extent);
      const double granules = static_cast<double>(GranuleOf(extent) * (ranks + 1)) *
                              static_cast<double>(share.own) / static_cast<double>(extent);
      ASSERT_LE(weight, static_cast<double>(share.of) / ranks + granules);
    }
    ASSERT_EQ(end, extent);
    ASSERT_LE(slicing.per, std::max<int64_t>(extent, SliceExtent(extent, ranks).per));
  }
}

/// The greatest load of a rank, where each tensor lies on the rank that its turn says.
int64_t GreatestLoad(const std::vector<int64_t>& weights, int ranks) {
  std::vector<int64_t> loads(ranks);
  const std::vector<Turn> turns = Turn::Of(weights);
  for (size_t tensor = 0; tensor < weights.size(); ++tensor)
    loads.at(turns[tensor].RankOf(ranks)) += weights[tensor];
  return *std::max_element(loads.begin(), loads.end());
}

TEST(Slices, HeavyTensorsAreGivenFirstToTheLeastLoadedRank) {
  const std::vector<int64_t> weights = {2, 3, 2, 7, 0, 3};
  std::vector<int> ranks;
  for (const Turn& turn : Turn::Of(weights)) ranks.push_back(turn.RankOf(3));
  EXPECT_EQ(ranks, (std::vector<int>{1, 1, 2, 0, 1, 2}));
  EXPECT_EQ(Turn::Of(weights)[0].before(), (std::vector<int64_t>{7, 3, 3}));
  EXPECT_EQ(Turn::Of(weights)[3], Turn());
  EXPECT_EQ(Turn::Of(weights)[1], Turn({7}));
  EXPECT_FALSE(Turn({7}) == Turn({6}));
  EXPECT_EQ(Turn({7}).RankOf(1), 0);
  EXPECT_EQ(GreatestLoad({5, 5, 4, 4, 3, 3, 3}, 3), 11);  // 4/3 - 1/9 of 9, the worst case
}

TEST(Slices, OwnersHaveTheirTensorWhole) {
  for (int ranks = 1; ranks < 6; ++ranks) {
    for (int owner = 0; owner < ranks; ++owner) {
      const Slicing whole = SliceWhole(7, ranks, owner);
      for (int rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(whole.Of(rank).size(), rank == owner ? 7 : 0);
      EXPECT_EQ(whole.OwnerOf(6), owner);
    }
  }
}

}  // namespace
}  // namespace coconet
