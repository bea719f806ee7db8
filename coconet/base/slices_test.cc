#include "coconet/base/slices.h"

#include <vector>

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

}  // namespace
}  // namespace coconet
