#include "bench/optimizers/cell.h"

#include <numeric>

#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

TEST(Cell, ParsesWhatItPrints) {
  const Cell cell = {DType::kBF16, 12};
  EXPECT_EQ(Text(cell), "adam:bf16:12");
  EXPECT_EQ(*ParseCell("adam:bf16:12"), cell);
  for (const char* text : {"adam:f32:@bert-large", "lamb:f32:@gpt2/64"}) {
    const absl::StatusOr<Cell> list = ParseCell(text);
    ASSERT_TRUE(list.ok()) << list.status();
    EXPECT_EQ(Text(*list), text);
  }
}

TEST(Cell, RefusesOtherTexts) {
  for (const char* text :
       {"", "f32:12", "adam:bf16", "adam:f33:1", "adam:f32:-1", "adam:f32:1:1", ":f32:1",
        "lamb:f32:@gpt3", "lamb:f32:@gpt2/0", "lamb:f32:@gpt2/x", "lamb:f32:gpt2"}) {
    EXPECT_EQ(ParseCell(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Cell, CountsTheElementsOfItsTensors) {
  const absl::StatusOr<Cell> all = ListCell("lamb", DType::kF32, "@bert-large"),
                             some = ListCell("lamb", DType::kF32, "@bert-large/1000");
  ASSERT_TRUE(all.ok() && some.ok());
  EXPECT_EQ(all->n, 335'707'968);
  const std::vector<int64_t> large = TensorSizes(*all), small = TensorSizes(*some);
  ASSERT_EQ(large.size(), 396);
  ASSERT_EQ(small.size(), 396);
  EXPECT_EQ(std::accumulate(small.begin(), small.end(), int64_t{0}), some->n);
  for (size_t t = 0; t < large.size(); ++t) EXPECT_EQ(small[t], (large[t] + 999) / 1000);
  EXPECT_EQ(TensorSizes(Flat(*some)), std::vector<int64_t>{some->n});
  EXPECT_TRUE(SizesOf(*some).at("N").is_list);
  EXPECT_FALSE(SizesOf(Flat(*some)).at("N").is_list);
}

}  // namespace
}  // namespace coconet::bench
