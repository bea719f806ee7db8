#include "autotune/calibrate/interference.h"

#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(FitInterference, NothingIsSlowedWhereLanesHaveAllToThemselves) {
  Rates rates;
  FitInterference({.beside_computation = 0, .beside_collectives = 0}, rates);
  EXPECT_EQ(rates.computation_beside, 1);
  EXPECT_EQ(rates.collective_beside, 1);
}

TEST(FitInterference, LanesThatTakeTurnsAreEachHalfAsFast) {
  Rates rates;
  FitInterference({.beside_computation = 1, .beside_collectives = 1}, rates);
  EXPECT_NEAR(rates.computation_beside, 2, 0.1);
  EXPECT_NEAR(rates.collective_beside, 2, 0.1);
}

TEST(FitInterference, OneLaneMaySufferAlone) {
  // While a collective runs, computation is 1.5 times as slow: a third of its time is lost.
  Rates rates;
  FitInterference({.beside_computation = 1.0 / 3, .beside_collectives = 0}, rates);
  EXPECT_NEAR(rates.computation_beside, 1.5, 0.1);
  EXPECT_NEAR(rates.collective_beside, 1, 0.05);
}

}  // namespace
}  // namespace coconet
