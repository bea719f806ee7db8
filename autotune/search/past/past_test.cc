// What earlier runs, and other programs, do to a tuning.

#include <set>
#include <string>

#include "autotune/testing/tuner_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST_F(TunerTest, ASpeedUpIsTimedInManyMemoriesAndRemembered) {
  const absl::StatusOr<Tuned> tuned = Run({40000, 20000, 90000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  const SpeedUp& speed_up = tuned->record.speed_up;
  EXPECT_TRUE(speed_up.IsKnown());
  EXPECT_NEAR(speed_up.ratio, 2, 0.05);
  EXPECT_GE(runner_.moves, 19) << "it starts in the first of 20";
  ASSERT_EQ(journal_.history.size(), 1u);
  EXPECT_EQ(journal_.history[0].speed_up, speed_up);
  EXPECT_EQ(journal_.history[0].best, NameOf(tuned->record.best));
}

TEST_F(TunerTest, TimesThatAreNotKeptAreNotSettled) {
  options_.settles = false;
  ASSERT_TRUE(Run({40000, 20000}).ok());
  EXPECT_EQ(runner_.moves, 0);
}

TEST_F(TunerTest, ASpeedUpUnlikeThatOfEarlierRunsIsARangeUntilTheThirdRun) {
  ASSERT_TRUE(Run({40000, 20000}).ok());
  journal_.history[0].speed_up = {8.6, 8.4, 8.8, 60};  // of a run beside another program, say
  for (int run = 2; run <= 3; ++run) {
    options_.earlier = journal_.stored.back().search;
    options_.incumbent = 1;
    runner_ = FakeRunner();
    // In the third run, the second agrees with it; what is measured alike as often is doubted.
    const absl::StatusOr<Tuned> tuned = Run({40000, 20000});
    ASSERT_TRUE(tuned.ok()) << tuned.status();
    EXPECT_FALSE(tuned->record.speed_up.IsKnown()) << run;
    EXPECT_LT(tuned->record.speed_up.low, 2.1);
    EXPECT_GT(tuned->record.speed_up.high, 8.5);
    EXPECT_EQ(tuned->record.complete, run == 3) << run;
    EXPECT_NEAR(journal_.history[0].speed_up.ratio, 2, 0.05) << "what this run has measured";
  }
  // Twice alike: the odd one is not believed.
  options_.earlier = journal_.stored.back().search;
  runner_ = FakeRunner();
  const absl::StatusOr<Tuned> tuned = Run({40000, 20000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_TRUE(tuned->record.speed_up.IsKnown());
}

TEST_F(TunerTest, TimesThatChangedByDifferentFactorsAreTriedAgain) {
  std::string said;
  ASSERT_TRUE(Run({80000, 40000, 20000, 60000}).ok());
  options_.earlier = journal_.stored.back().search;
  options_.incumbent = 2;
  options_.progress = [&](absl::string_view text) { absl::StrAppend(&said, text, "\n"); };
  runner_ = FakeRunner();
  // The baseline takes twice as long, the best as long as before, and the last is the fastest now.
  const absl::StatusOr<Tuned> tuned = Run({160000, 40000, 20000, 10000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_THAT(said, HasSubstr("changed by different factors"));
  EXPECT_EQ(runner_.ever_loaded, (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(tuned->best, 3);
}

TEST_F(TunerTest, LeadersOfEarlierRunsAreTimedAgain) {
  ASSERT_TRUE(Run({80000, 21000, 20000, 60000}).ok());
  options_.earlier = journal_.stored.back().search;
  options_.incumbent = 2;
  runner_ = FakeRunner();
  const absl::StatusOr<Tuned> tuned = Run({80000, 15000, 20000, 60000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, 1) << "a tenth slower then";
}

TEST_F(TunerTest, WhatWasDroppedWithoutAQuietRoundIsTriedAgain) {
  runner_.disturbed_calls[3] = 3;  // its first trial, and the first step of the second
  const absl::StatusOr<Tuned> tuned = Run({80000, 60000, 44800, 12000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, 3);
}

TEST_F(TunerTest, ASearchEndsWhereItTookLongerThanItMaySave) {
  options_.search = SearchKind::kAuto;  // races through so few
  options_.job_steps = 1e5;
  const std::vector<double> us(40, 20);
  absl::StatusOr<Tuned> tuned = Run(us);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_TRUE(tuned->record.complete);
  EXPECT_GE(tuned->record.search.tried, 9) << "the baseline and a batch";
  EXPECT_LT(tuned->record.search.tried, 40);
  EXPECT_EQ(tuned->record.best.verdict, Verdict::kMeasured) << tuned->record.best.reason;
  EXPECT_THAT(SearchText(tuned->record), HasSubstr("would take longer than it can save"));
  EXPECT_THAT(tuned->variants,
              Contains(::testing::Field(&VariantResult::reason,
                                        "not tried: it would take longer than it can save")));
  runner_ = FakeRunner();
  options_.job_steps = 1e9;  // a long job
  tuned = Run(us);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->record.search.tried, 40);
  runner_ = FakeRunner();
  options_.job_steps = 1e5;
  options_.search = SearchKind::kRacing;  // which was asked for, and leaves nothing out
  tuned = Run(us);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->record.search.tried, 40);
}

}  // namespace
}  // namespace coconet
