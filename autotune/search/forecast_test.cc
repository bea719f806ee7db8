#include "autotune/search/forecast.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::AnyOfArray;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSubsetOf;

std::vector<Schedule> Momentum() {
  return Derive(*BindSizes(*MakeWorkload("momentum"), {{"N", 1000}})).value();
}
std::vector<Schedule> Epilogue() {
  return Derive(*Parse("coconet 1\ninput x : f32[4, 100, 64] local\n"
                       "output y = exp(abs(all_reduce(sum, x)))\n"))
      .value();
}

class ForecastTest : public ::testing::Test {
 protected:
  /// The derived schedule that is written so, with this number of pieces.
  void Add(const std::vector<Schedule>& derived, const std::string& words, int pieces = 1) {
    for (const Schedule& s : derived) {
      if (Describe(s) != words) continue;
      variants_.push_back({s, {.pieces = pieces}});
      return;
    }
    ADD_FAILURE() << words;
  }
  void Add(const std::string& words, int pieces = 1) { Add(momentum_, words, pieces); }
  std::vector<std::vector<int>> Features() const { return FeaturesOf(variants_); }
  Forecast Make() const { return Forecast(Features()); }

  const std::vector<Schedule> momentum_ = Momentum();
  std::vector<Variant> variants_;
};

/// The features of a variant that a plainer one, variant 0, lacks.
std::vector<int> More(const std::vector<std::vector<int>>& features, int variant) {
  std::vector<int> more;
  for (int feature : features[variant]) {
    if (std::find(features[0].begin(), features[0].end(), feature) == features[0].end())
      more.push_back(feature);
  }
  return more;
}

TEST_F(ForecastTest, FeaturesAreLaunchesOverlapsSlicedStatesAndNumbers) {
  Add("AR; C");
  Add("AR; fuse(C)");
  Add("ol(AR, fuse(C))", 4);
  Add("RS; fuse(C); AG p m");
  Add("RS; fuse(C); AG p; slice m");
  const std::vector<std::vector<int>> features = Features();
  EXPECT_EQ(features[0].size(), 8u) << "two launches, and six numbers of any config";
  const std::vector<int> kernel = More(features, 1);
  EXPECT_EQ(kernel.size(), 1u);
  EXPECT_EQ(More(features, 2).size(), 5u)
      << "pieces, the overlap, its second launch, and both launches as parts of overlaps";
  EXPECT_THAT(kernel, IsSubsetOf(More(features, 2)));
  EXPECT_EQ(More(features, 3).size(), 3u);
  EXPECT_EQ(More(features, 4).size(), 4u) << "the gather of p alone is another one";
}

TEST_F(ForecastTest, WhatHasOtherNodesInAnotherScheduleIsOneFeature) {
  const std::vector<Schedule> epilogue = Epilogue();
  Add(epilogue, "AR; C");
  Add(epilogue, "RS[1]; C; AG y");
  Add(epilogue, "RS[1]; AG; C");
  const std::vector<std::vector<int>> features = Features();
  const std::vector<int> gathered_after = More(features, 1), gathered_before = More(features, 2);
  EXPECT_EQ(gathered_after.size(), 2u) << "RS[1] and AG y; C is of other nodes";
  ASSERT_EQ(gathered_before.size(), 2u) << "RS[1] and AG";
  EXPECT_THAT(gathered_before, Contains(AnyOfArray(gathered_after))) << "RS[1]";
}

TEST_F(ForecastTest, OfWhatIsUnknownTheLastFirstThenOthers) {
  Add("AR; fuse(C)");
  Add("RS; fuse(C); AG p; slice m");
  Add("ol(RS, fuse(C), AG p); slice m");
  EXPECT_THAT(Make().MostPromising({0, 1, 2}, 9), ElementsAre(2, 0, 1))
      << "1 has the launches of 2";
}

TEST_F(ForecastTest, ABatchIsOfDifferentSchedules) {
  for (int i = 0; i < 9; ++i) Add("RS; C; AG p m");
  Add("fuse(AR, C)");
  EXPECT_EQ(Make().MostPromising({0, 1, 2, 3, 4, 5, 6, 7, 9}, 2), (std::vector<int>{9, 7}));
  EXPECT_EQ(Make().MostPromising({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 3)[1], 8);
}

TEST_F(ForecastTest, OfEqualsTheLast) {
  Add("AR; C");
  Add("AR; C");
  EXPECT_THAT(Make().MostPromising({0, 1}, 9), ElementsAre(1, 0));
}

TEST_F(ForecastTest, ATimeSpeaksForWhatSharesItsLaunches) {
  const std::vector<Schedule> epilogue = Epilogue();
  Add(epilogue, "RS[1]; C; AG y");
  Add(epilogue, "RS[1]; fuse(C); AG y");
  Add(epilogue, "RS[2]; C; AG y");
  Add(epilogue, "RS[2]; fuse(C); AG y");
  Forecast forecast = Make();
  forecast.Add(0, 1000);
  forecast.Add(2, 10);
  EXPECT_THAT(forecast.MostPromising({1, 3}, 9), ElementsAre(3, 1));
}

TEST_F(ForecastTest, TheLastTimeOfAVariantCounts) {
  Forecast forecast({{0}, {1}, {0, 2}, {1, 2}});
  forecast.Add(0, 1000);
  forecast.Add(1, 100);
  EXPECT_THAT(forecast.MostPromising({2, 3}, 9), ElementsAre(3, 2));
  forecast.Add(0, 1);
  EXPECT_THAT(forecast.MostPromising({2, 3}, 9), ElementsAre(2, 3));
}

TEST_F(ForecastTest, PiecesAndSlicedStatesHaveTheirTimes) {
  Add("ol(AR, fuse(C))", 2);
  Add("RS; fuse(C, AG); slice m");
  Add("ol(fuse(RS, AG), fuse(C))", 8);
  Add("ol(fuse(RS, AG), fuse(C))", 2);
  Add("fuse(RS, C, AG); slice m");
  Add("fuse(RS, C, AG)");
  Forecast forecast = Make();
  forecast.Add(0, 10);
  forecast.Add(1, 1000);
  EXPECT_THAT(forecast.MostPromising({2, 3}, 9), ElementsAre(3, 2)) << "two pieces were quick";
  EXPECT_THAT(forecast.MostPromising({4, 5}, 9), ElementsAre(5, 4)) << "a sliced m was slow";
}

/// 300 variants whose times are products of what their features cost: the best comes early.
TEST_F(ForecastTest, TheBestOfManyIsFoundInAFewBatches) {
  std::vector<std::vector<int>> features;
  std::vector<double> us;
  for (int a = 0; a < 10; ++a) {
    for (int b = 0; b < 10; ++b) {
      for (int c = 0; c < 3; ++c) {
        features.push_back({a, 10 + b, 20 + c});
        us.push_back(1000 * std::pow(1.2, (a * 7 + 3) % 10) * std::pow(1.3, (b * 3 + 5) % 10) *
                     (1 + c % 2));
      }
    }
  }
  const size_t best = std::min_element(us.begin(), us.end()) - us.begin();
  Forecast forecast(features);
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
