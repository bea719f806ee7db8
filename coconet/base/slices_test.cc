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

TEST(Slices, WholeLinesOfElements) {
  EXPECT_EQ(Parts(SliceExtent(256, 2)), (std::vector<Range>{{0, 128}, {128, 256}}));
  EXPECT_EQ(Parts(SliceExtent(130, 2)), (std::vector<Range>{{0, 128}, {128, 130}}));
  EXPECT_EQ(SliceExtent(130, 2).padded(), 256);
}

TEST(Slices, MoreRanksThanElementsLeaveSomeEmpty) {
  EXPECT_EQ(Parts(SliceExtent(1, 3)), (std::vector<Range>{{0, 1}, {1, 1}, {1, 1}}));
  EXPECT_EQ(Parts(SliceExtent(65, 4)), (std::vector<Range>{{0, 64}, {64, 65}, {65, 65}, {65, 65}}));
}

TEST(Slices, NothingIsCutIntoNothing) {
  EXPECT_EQ(Parts(SliceExtent(0, 2)), (std::vector<Range>{{0, 0}, {0, 0}}));
  EXPECT_EQ(SliceExtent(0, 2).padded(), 0);
}

TEST(Slices, RowsAreRoundedOnlyAsFarAsLinesNeed) {
  EXPECT_EQ(SliceExtent(10, 4, 64).per, 3);   // a row is a line
  EXPECT_EQ(SliceExtent(10, 4, 128).per, 3);
  EXPECT_EQ(SliceExtent(10, 4, 32).per, 4);   // two rows a line
  EXPECT_EQ(SliceExtent(10, 4, 3).per, 64);   // rows and lines meet every 64 rows
  EXPECT_EQ(SliceExtent(10, 4, 0).per, 64);   // no elements at all
}

TEST(Slices, PartsCoverTheExtentOnceAndStartOnLines) {
  for (int64_t extent : {0, 1, 63, 64, 65, 1000, 4097, 100003}) {
    for (int ranks : {1, 2, 3, 4, 7, 8}) {
      for (int64_t inner : {1, 2, 48, 64, 100}) {
        const Slicing slicing = SliceExtent(extent, ranks, inner);
        int64_t end = 0;
        for (const Range& part : Parts(slicing)) {
          EXPECT_EQ(part.begin, end);
          EXPECT_LE(part.size(), slicing.per);
          if (part.size() > 0) {
            EXPECT_EQ(part.begin * inner % kSliceAlign, 0);
          }
          end = part.end;
        }
        EXPECT_EQ(end, extent);
        EXPECT_GE(slicing.padded(), extent);
      }
    }
  }
}

}  // namespace
}  // namespace coconet
