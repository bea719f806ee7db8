#include "autotune/report/scale.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(LogScale, HoldsAllValuesWithRoom) {
  const LogScale scale({10, 1000, 0, -5, std::numeric_limits<double>::infinity()});
  EXPECT_LT(scale.low(), 10);
  EXPECT_GT(scale.high(), 1000);
  EXPECT_GT(scale.At(10), 0.01);
  EXPECT_LT(scale.At(1000), 0.99);
  EXPECT_NEAR(scale.At(100), 0.5, 1e-9) << "the middle of logarithms";
  EXPECT_EQ(scale.Percent(100), "50.000%");
}

TEST(LogScale, OfEqualValuesAndOfNoneIsAnAxis) {
  EXPECT_NEAR(LogScale({7, 7}).At(7), 0.5, 1e-9);
  EXPECT_LT(LogScale({}).low(), LogScale({}).high());
}

TEST(LogScale, TicksAreFewAndWithin) {
  for (double low : {1e-3, 0.7, 3.0, 1000.0}) {
    for (double ratio : {1.0, 1.05, 1.3, 1.9, 3.0, 8.0, 60.0, 1e4, 1e9, 1e14}) {
      for (int most : {4, 5, 10}) {
        const LogScale scale({low, low * ratio});
        const std::vector<double> ticks = scale.Ticks(most);
        EXPECT_GE(ticks.size(), 2u) << low << " " << ratio << " " << most;
        EXPECT_LE(ticks.size(), static_cast<size_t>(most)) << low << " " << ratio;
        for (size_t i = 0; i < ticks.size(); ++i) {
          EXPECT_GE(ticks[i], scale.low());
          EXPECT_LE(ticks[i], scale.high());
          if (i > 0) EXPECT_GT(ticks[i], ticks[i - 1]);
        }
      }
    }
  }
}

TEST(AxisTexts, AreShort) {
  EXPECT_EQ(CountText(512), "512");
  EXPECT_EQ(CountText(1500), "1.5k");
  EXPECT_EQ(CountText(2e7), "20M");
  EXPECT_EQ(RoundTimeText(0.5), "500 ns");
  EXPECT_EQ(RoundTimeText(20), "20 us");
  EXPECT_EQ(RoundTimeText(5e6), "5 s");
}

}  // namespace
}  // namespace coconet
