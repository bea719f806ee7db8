#include "autotune/search/strategy.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "absl/algorithm/container.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// 2,400 variants of three features, whose times are products of the features' effects, but for one
/// feature that helps only beside another.
struct Space {
  std::vector<std::vector<int>> features;
  std::vector<double> us;
};
Space MakeSpace() {
  Space space;
  for (int a = 0; a < 20; ++a) {
    for (int b = 0; b < 20; ++b) {
      for (int c = 0; c < 6; ++c) {
        space.features.push_back({a, 20 + b, 40 + c});
        const double together = a == 3 && b == 7 ? 0.5 : 1;
        space.us.push_back(100 * (1 + (a * 7 + 5) % 20) * (1 + (b * 3 + 1) % 20) *
                           (1 + 0.1 * ((c + 2) % 6)) * together);
      }
    }
  }
  return space;
}

/// Tries `most` variants, 8 at a time; the share of the variants that are faster than the best.
double ShareFaster(SearchKind kind, int most, uint64_t seed) {
  const Space space = MakeSpace();
  const std::unique_ptr<Strategy> strategy = MakeStrategy(kind, space.features, seed);
  std::vector<int> untried(space.us.size());
  for (size_t v = 0; v < untried.size(); ++v) untried[v] = static_cast<int>(v);
  double best = 1e12;
  for (int tried = 0; tried < most; tried += 8) {
    const std::vector<int> next = strategy->Next(untried, 8);
    EXPECT_EQ(std::set<int>(next.begin(), next.end()).size(), 8u);
    for (int v : next) {
      EXPECT_EQ(std::erase(untried, v), 1u);
      strategy->Add(v, space.us[v]);
      best = std::min(best, space.us[v]);
    }
  }
  return static_cast<double>(absl::c_count_if(space.us, [&](double us) { return us < best; })) /
         static_cast<double>(space.us.size());
}

TEST(Strategy, TheModelFindsTheBestOfALargeSpaceInFewTries) {
  EXPECT_LE(ShareFaster(SearchKind::kModel, 160, 1), 0.002);
}

TEST(Strategy, EvolutionFindsTheBestOfALargeSpaceInFewTries) {
  for (uint64_t seed = 1; seed <= 5; ++seed)
    EXPECT_LE(ShareFaster(SearchKind::kEvolution, 400, seed), 0.01) << seed;
}

TEST(Strategy, ExhaustiveGoesInOrder) {
  const std::unique_ptr<Strategy> strategy =
      MakeStrategy(SearchKind::kExhaustive, {{0}, {1}, {2}, {3}}, 1);
  EXPECT_THAT(strategy->Next({0, 2, 3}, 2), ElementsAre(0, 2));
  EXPECT_THAT(strategy->Next({}, 2), IsEmpty());
  EXPECT_TRUE(strategy->Promises({3}, 1e-9)) << "all are tried";
  EXPECT_FALSE(strategy->Promises({}, 1e9));
}

TEST(Strategy, TheModelPromisesOnlyWhatItForecasts) {
  std::vector<std::vector<int>> features;
  for (int v = 0; v < 40; ++v) features.push_back({v % 2});
  const std::unique_ptr<Strategy> strategy = MakeStrategy(SearchKind::kModel, features, 1);
  for (int v = 0; v < 30; ++v) strategy->Add(v, v % 2 == 0 ? 100 : 200);
  EXPECT_TRUE(strategy->Promises({30, 31}, 110));
  EXPECT_FALSE(strategy->Promises({31, 33}, 110));
  EXPECT_FALSE(strategy->Promises({30, 31}, 90));
}

TEST(Strategy, NamesOfKindsParse) {
  for (SearchKind kind : kAllSearchKinds) EXPECT_EQ(ParseSearchKind(Name(kind)), kind);
  EXPECT_EQ(ParseSearchKind("best"), std::nullopt);
  EXPECT_EQ(KindFor(SearchKind::kAuto, 10), SearchKind::kRacing);
  EXPECT_EQ(KindFor(SearchKind::kAuto, 1000), SearchKind::kModel);
  EXPECT_EQ(KindFor(SearchKind::kAuto, 100000), SearchKind::kEvolution);
  EXPECT_EQ(KindFor(SearchKind::kExhaustive, 10), SearchKind::kExhaustive);
}

}  // namespace
}  // namespace coconet
