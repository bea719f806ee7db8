#include <string>

#include "autotune/store/history/history_rows.h"
#include "autotune/store/history/speed_up.h"
#include "autotune/testing/tuning_cache_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Measured RunOf(double ratio, int64_t at) {
  return {.best = "t1|vec=8",
          .baseline = "t0|vec=8",
          .speed_up = {ratio, 0.97 * ratio, 1.03 * ratio, 60, 0.25},
          .load = 0.1,
          .measured_s = at};
}

TEST(SpeedUp, IsGivenWithItsInterval) {
  EXPECT_EQ(Text(SpeedUp()), "");
  EXPECT_EQ(Text(SpeedUp{2.134, 2.08, 2.19, 40}), "2.13x (2.08 to 2.19)");
  EXPECT_EQ(Text(SpeedUp{.rounds = 20}), "1.00x") << "the baseline itself";
  EXPECT_THAT(Text(SpeedUp{2.6, 1.9, 4.2, 40}), HasSubstr("between 1.9x and 4.2x"));
  EXPECT_FALSE((SpeedUp{2.6, 1.9, 4.2, 40}).IsKnown());
  EXPECT_TRUE((SpeedUp{2.6, 2.5, 2.7, 40}).IsKnown());
}

TEST(SpeedUp, OfAnotherTimeIsCompared) {
  const SpeedUp slow{2.6, 2.5, 2.7, 40, 0.25}, fast{8.6, 8.3, 8.9, 40, 0.27};
  EXPECT_TRUE(Disagree(slow, fast));
  EXPECT_TRUE(Disagree(fast, slow));
  EXPECT_FALSE(Disagree(slow, slow));
  EXPECT_FALSE(Disagree(slow, {8.6, 2, 20, 40, 0.25})) << "it says nothing";
  EXPECT_TRUE(IsSameState(slow, fast));
  EXPECT_FALSE(IsSameState(slow, {8.6, 8.3, 8.9, 40, 0.8}));
  EXPECT_TRUE(IsSameState(slow, {8.6, 8.3, 8.9, 40, 0})) << "not known";
}

TEST_F(TuningCacheTest, KeepsWhatRunsHaveMeasured) {
  const TuningRecord record = Record("adam", fast_, slow_), other = Record("sgd", fast_, slow_);
  const std::unique_ptr<TuningCache> cache = Open();
  EXPECT_THAT(cache->History(record.key), IsEmpty());
  for (int run = 0; run < kMostOfHistory + 5; ++run)
    cache->Remember(record.key, RunOf(2 + 0.01 * run, 1700000000 + run));
  cache->Remember(other.key, RunOf(3, 1700000000));
  const std::vector<Measured> history = Open()->History(record.key);
  ASSERT_EQ(history.size(), static_cast<size_t>(kMostOfHistory));
  EXPECT_EQ(history[0], RunOf(2 + 0.01 * (kMostOfHistory + 4), 1700000000 + kMostOfHistory + 4));
  EXPECT_EQ(Open()->History(other.key).size(), 1u);
  cache->Forget(record.key);
  EXPECT_THAT(Open()->History(record.key), IsEmpty());
}

TEST_F(TuningCacheTest, KeepsTheSpeedUpOfARecord) {
  TuningRecord record = Record("adam", fast_, slow_);
  record.speed_up = {2.1, 2.0, 2.2, 60, 0.25};
  Open()->Store(record, {slow_, fast_});
  EXPECT_EQ(Open()->Find(record.key_text)->speed_up, record.speed_up);
  Tamper("UPDATE decision SET speed_up_low = 3");
  EXPECT_FALSE(Open()->Find(record.key_text).has_value()) << "low is above the ratio";
}

TEST_F(TuningCacheTest, AHistoryThatMakesNoSenseIsNone) {
  const TuningRecord record = Record("adam", fast_, slow_);
  const std::unique_ptr<TuningCache> cache = Open();
  cache->Remember(record.key, RunOf(2, 1700000000));
  Tamper("UPDATE history SET high = 1");
  EXPECT_THAT(Open()->History(record.key), IsEmpty());
}

}  // namespace
}  // namespace coconet
