#include "autotune/search/forecast.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;

class ForecastTest : public ::testing::Test {
 protected:
  int Add(std::string schedule, int pieces = 1) {
    VariantResult& variant = variants_.emplace_back();
    variant.schedule = std::move(schedule);
    variant.config.pieces = pieces;
    return static_cast<int>(variants_.size()) - 1;
  }
  Forecast Make() const {
    std::vector<const VariantResult*> all;
    for (const VariantResult& variant : variants_) all.push_back(&variant);
    return Forecast(all);
  }
  std::deque<VariantResult> variants_;
};

TEST_F(ForecastTest, OfWhatIsUnknownTheLastFirstThenOthers) {
  Add("AR; C");
  Add("RS; C; AG p");
  Add("ol(RS, C, AG p)");
  EXPECT_THAT(Make().MostPromising({0, 1, 2}, 9), ElementsAre(2, 0, 1))
      << "1 has the launches of 2";
}

TEST_F(ForecastTest, ABatchIsOfDifferentSchedules) {
  for (int i = 0; i < 9; ++i) Add("RS; C; AG p");
  Add("fuse(AR, C)");
  EXPECT_EQ(Make().MostPromising({0, 1, 2, 3, 4, 5, 6, 7, 9}, 2), (std::vector<int>{9, 7}));
  EXPECT_EQ(Make().MostPromising({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 3)[1], 8);
}

TEST_F(ForecastTest, OfEqualsTheLast) {
  Add("AR; C");
  Add("AR; C");
  EXPECT_THAT(Make().MostPromising({0, 1}, 9), ElementsAre(1, 0));
}

TEST_F(ForecastTest, ATimeSpeaksForWhatSharesItsWords) {
  Add("RS[1]; fuse(C); AG a");
  Add("RS[1]; fuse(C); AG b");
  Add("RS; fuse(C); AG a");
  Add("RS; fuse(C); AG b");
  Forecast forecast = Make();
  forecast.Add(0, 1000);
  forecast.Add(2, 10);
  EXPECT_THAT(forecast.MostPromising({1, 3}, 9), ElementsAre(3, 1));
}

TEST_F(ForecastTest, TheLastTimeOfAVariantCounts) {
  Add("A");
  Add("B");
  Add("A; X");
  Add("B; X");
  Forecast forecast = Make();
  forecast.Add(0, 1000);
  forecast.Add(1, 100);
  EXPECT_THAT(forecast.MostPromising({2, 3}, 9), ElementsAre(3, 2));
  forecast.Add(0, 1);
  EXPECT_THAT(forecast.MostPromising({2, 3}, 9), ElementsAre(2, 3));
}

TEST_F(ForecastTest, NumbersOverlapsAndSlicedStatesAreWords) {
  Add("ol(RS, fuse(C))", 2);
  Add("RS; fuse(C); slice m v");
  Add("ol(RS, send)", 8);
  Add("ol(fuse(C), send)", 2);
  Add("RS; slice v");
  Add("RS; slice p");
  Forecast forecast = Make();
  forecast.Add(0, 10);
  forecast.Add(1, 1000);
  EXPECT_THAT(forecast.MostPromising({2, 3}, 9), ElementsAre(3, 2)) << "two pieces were quick";
  EXPECT_THAT(forecast.MostPromising({4, 5}, 9), ElementsAre(5, 4)) << "a sliced v was slow";
}

/// 300 variants whose times are products of what their words cost: the best comes early.
TEST_F(ForecastTest, TheBestOfManyIsFoundInAFewBatches) {
  std::vector<double> us;
  for (int a = 0; a < 10; ++a) {
    for (int b = 0; b < 10; ++b) {
      for (int c = 0; c < 3; ++c) {
        Add(absl::StrCat("RS[", a, "]; fuse(C", b, "); AG ", c));
        us.push_back(1000 * std::pow(1.2, (a * 7 + 3) % 10) * std::pow(1.3, (b * 3 + 5) % 10) *
                     (1 + c % 2));
      }
    }
  }
  const size_t best = std::min_element(us.begin(), us.end()) - us.begin();
  Forecast forecast = Make();
  std::vector<int> open(us.size());
  for (size_t v = 0; v < us.size(); ++v) open[v] = static_cast<int>(v);
  size_t tried = 0;
  for (bool found = false; !found; ++tried) {
    const int next = forecast.MostPromising(open, 1)[0];
    found = next == static_cast<int>(best);
    forecast.Add(next, us[next]);
    open.erase(std::find(open.begin(), open.end(), next));
  }
  EXPECT_LE(tried, us.size() / 6);
}

}  // namespace
}  // namespace coconet
