#include "coconet/ir/types.h"

#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(Types, PrintAsInTheTextForm) {
  EXPECT_EQ(Text(Shape{}), "[]");
  EXPECT_EQ(Text(Shape{"N", 1024}), "[N, 1024]");
  EXPECT_EQ(Text(Layout::Local()), "local");
  EXPECT_EQ(Text(Layout::Sliced(1)), "sliced(1)");
  EXPECT_EQ(Text(Layout::Sliced(Layout::kFlat)), "sliced(flat)");
  EXPECT_EQ(Text(Layout::SlicedBy("L", 1)), "sliced(1, by L)");
  EXPECT_EQ(Text(TensorType{DType::kBF16, {"N"}, Layout::Auto()}), "bf16[N] auto");
  EXPECT_EQ(Text(TensorType{DType::kI64, {}, Layout::Replicated()}), "i64[] replicated");
}

TEST(Types, SymbolsAreUnboundExtents) {
  EXPECT_TRUE(IsBound({2, 3}));
  EXPECT_FALSE(IsBound({2, "N"}));
  EXPECT_EQ(NumElements({2, 3}), 6);
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ(NumElements({2, 0}), 0);
}

TEST(Types, ExtentsAddUp) {
  const Dim sum = SumOf({{"N", 4, "M", "N"}});
  EXPECT_EQ(Text(sum), "M + 2*N + 4");
  EXPECT_EQ(SumOf({{Times(2, "N"), "M", 4}}), sum);
  EXPECT_EQ(SumOf({{sum, sum}}), Times(2, sum));
  EXPECT_EQ(SumOf({{3, 4}}), Dim(7));
  EXPECT_EQ(SumOf({{"N"}}), Dim("N"));
  EXPECT_EQ(Times(0, "N"), Dim(0));
  EXPECT_EQ(SumOf({}), Dim(0));
  EXPECT_EQ(SymbolsOf(sum), (std::vector<std::string>{"M", "N"}));
  EXPECT_TRUE(SymbolsOf(5).empty());
  const auto only = [](absl::string_view known, int64_t size) {
    return [known, size](const std::string& symbol) {
      return symbol == known ? std::optional(size) : std::nullopt;
    };
  };
  EXPECT_EQ(WithSizes(sum, only("N", 10)), SumOf({{"M", 24}}));
  EXPECT_EQ(WithSizes(SumOf({{"M", 24}}), only("M", 0)), Dim(24));
  // What 64 bits do not hold is no tensor's extent either.
  const Dim most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(SumOf({{most, most}}), most);
  EXPECT_EQ(WithSizes(sum, [](const std::string&) { return std::optional(int64_t{1} << 62); }),
            most);
}

TEST(Types, ExtentsHaveToMakeATensor) {
  EXPECT_TRUE(CheckExtents({kMaxElements}).ok());
  EXPECT_TRUE(CheckExtents({1 << 20, "N", 1 << 20}).ok());
  EXPECT_TRUE(CheckExtents({0, kMaxElements}).ok());
  EXPECT_EQ(CheckExtents({-1}).message(), "shape [-1]: an extent is negative");
  EXPECT_EQ(
      CheckExtents({kMaxElements, 2}).message(),
      "shape [1099511627776, 2]: more than 2^40 elements; a tensor holds at most 1099511627776");
  EXPECT_FALSE(CheckExtents({int64_t{1} << 62, int64_t{1} << 62}).ok());
  EXPECT_FALSE(CheckExtents({0, int64_t{1} << 62}).ok());
}

std::tuple<int64_t, int64_t, int64_t> PerOuterInner(const Shape& shape, int dim, int ranks) {
  const TensorSlicing s = SlicingOf(shape, dim, ranks);
  return {s.slicing.per, s.outer, s.inner};
}

TEST(Types, SlicingOfADimension) {
  EXPECT_EQ(PerOuterInner({1000}, 0, 3), std::make_tuple(336, 1, 1));
  EXPECT_EQ(PerOuterInner({10, 96}, 0, 4), std::make_tuple(3, 1, 96));
  EXPECT_EQ(PerOuterInner({10, 1}, 0, 4),
            std::make_tuple(3, 1, 1));  // the rows of all tensors with ten rows are cut alike
  EXPECT_EQ(PerOuterInner({10, 1000}, 1, 4), std::make_tuple(256, 10, 1));
  EXPECT_EQ(PerOuterInner({10, 100}, Layout::kFlat, 4), std::make_tuple(256, 1, 1));
  EXPECT_EQ(PerOuterInner({0}, 0, 2), std::make_tuple(0, 1, 1));
}

TEST(Types, SlicedStorageIsPadded) {
  const TensorSlicing rows = SlicingOf({10, 1000}, 1, 4);
  EXPECT_EQ(rows.slice_elements(), 10 * 256);
  EXPECT_EQ(rows.padded_elements(), 10 * 1024);
  EXPECT_FALSE(rows.contiguous());
  EXPECT_TRUE(SlicingOf({10, 1000}, 0, 4).contiguous());
  EXPECT_TRUE(SlicingOf({10, 1000}, Layout::kFlat, 4).contiguous());
}

}  // namespace
}  // namespace coconet
