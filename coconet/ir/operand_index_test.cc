#include "coconet/ir/operand_index.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// OwnMatrixDims as "begin to end"; "none" where it has nothing.
std::string Own(const std::vector<int64_t>& product, const std::vector<int64_t>& operand) {
  const std::optional<DimRange> own = OwnMatrixDims(product, operand);
  return own.has_value() ? absl::StrCat(own->begin, " to ", own->end) : "none";
}

TEST(OwnMatrixDims, AreNeighbours) {
  EXPECT_EQ(Own({}, {}), "0 to 0");
  EXPECT_EQ(Own({2, 3}, {}), "0 to 0");
  EXPECT_EQ(Own({2, 3}, {2, 3}), "0 to 2");
  EXPECT_EQ(Own({2, 3}, {2, 1}), "0 to 1");
  EXPECT_EQ(Own({2, 3}, {1, 3}), "1 to 2");
  EXPECT_EQ(Own({2, 3}, {3}), "1 to 2");
  EXPECT_EQ(Own({2, 5, 3}, {2, 1, 3}), "none");
  EXPECT_EQ(Own({2, 1, 3}, {2, 1, 3}), "0 to 3");
  EXPECT_EQ(Own({1, 2, 5, 3}, {1, 2, 1, 1}), "1 to 2");
  EXPECT_EQ(Own({2, 5, 3, 4}, {5, 3, 1}), "1 to 3");
}

}  // namespace
}  // namespace coconet
