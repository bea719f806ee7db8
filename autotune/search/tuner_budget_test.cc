#include "autotune/search/tuner.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autotune/testing/tuner_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(TunerTest, TheIncumbentIsTimedBesideWhatIsTried) {
  options_.incumbent = 7;
  options_.budget_s = 0.5;
  const absl::StatusOr<Tuned> tuned = Run({100000, 1, 1, 1, 1, 1, 1, 50000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_GE(tuned->variants[7].timing.samples, 1);
}

TEST_F(TunerTest, TheBudgetEndsWithTheBestSoFar) {
  options_.budget_s = 1;
  const absl::StatusOr<Tuned> tuned = Run(std::vector<double>(40, 100000));
  ASSERT_TRUE(tuned.ok());
  EXPECT_LT(runner_.now_s, 3);
  EXPECT_FALSE(tuned->record.complete);
  EXPECT_EQ(tuned->variants.back().verdict, Verdict::kNotMeasured);
  EXPECT_EQ(tuned->variants.back().reason, "budget of 1 s ended");
  EXPECT_FALSE(journal_.stored.back().complete);
}

TEST_F(TunerTest, LaterRunsGoOnWhereABudgetEnded) {
  std::mt19937_64 random(8);
  std::uniform_real_distribution<double> uniform(20000, 200000);
  std::vector<double> us(60);
  for (double& t : us) t = uniform(random);
  options_.budget_s = 12;
  std::set<int> loaded_before;
  int runs = 0, again = 0;
  TuningRecord record;
  while (!record.complete && runs < 20) {
    runner_ = FakeRunner();
    if (runs > 0) {
      options_.earlier = record.search;
      options_.incumbent = record.best.trace[1] - '0';
      if (record.best.trace.size() > 2)
        options_.incumbent = 10 * options_.incumbent + record.best.trace[2] - '0';
    }
    const absl::StatusOr<Tuned> tuned = Run(us);
    ASSERT_TRUE(tuned.ok()) << tuned.status();
    for (int v : runner_.ever_loaded) again += !loaded_before.insert(v).second;
    record = tuned->record;
    EXPECT_EQ(record.search.runs, ++runs);
    for (const VariantResult& v : tuned->variants) {
      if (loaded_before.contains(std::stoi(v.trace.substr(1)))) {
        EXPECT_GT(v.timing.samples, 0);
      }
    }
  }
  EXPECT_TRUE(record.complete) << SearchText(record);
  EXPECT_GT(runs, 1);
  EXPECT_LT(again, 8 * runs) << "the baseline, the incumbent, and what is nearly as fast";
  EXPECT_EQ(loaded_before.size(), us.size());
  EXPECT_EQ(record.best.trace,
            absl::StrCat("t", std::min_element(us.begin(), us.end()) - us.begin()));
}

TEST_F(TunerTest, LaterRunsCompileLessAtOnceWhereABudgetEndedInTheFirstCompile) {
  options_.budget_s = 0.4;  // for the compile of the baseline and of less than three others
  std::vector<int> tried;
  for (int run = 0; run < 3; ++run) {
    runner_ = FakeRunner();  // keeps no binaries
    const absl::StatusOr<Tuned> tuned = Run(std::vector<double>(40, 1000));
    ASSERT_TRUE(tuned.ok()) << tuned.status();
    EXPECT_EQ(runner_.compiled.size(), std::vector<size_t>({9, 5, 3})[run]);
    tried.push_back(tuned->record.search.tried);
    options_.earlier = tuned->record.search;
    options_.incumbent = 0;
  }
  EXPECT_EQ(tried, std::vector<int>({1, 1, 3}));
}

TEST_F(TunerTest, TimesOfEarlierRunsAreConvertedToTheSpeedOfToday) {
  options_.budget_s = 1000;
  ASSERT_TRUE(Run({80000, 40000, 20000, 60000}).ok());
  options_.earlier = journal_.stored.back().search;
  options_.incumbent = 2;
  runner_ = FakeRunner();
  const absl::StatusOr<Tuned> tuned = Run({160000, 80000, 40000, 120000});  // all twice as slow
  ASSERT_TRUE(tuned.ok());
  EXPECT_EQ(runner_.ever_loaded, (std::set<int>{0, 2})) << "the others are known to be slower";
  EXPECT_NEAR(tuned->variants[1].timing.median_us, 80000, 4000);
  EXPECT_NEAR(tuned->variants[3].timing.median_us, 120000, 6000);
  EXPECT_EQ(tuned->variants[3].reason, "3.0x as long as the best in an earlier run");
  EXPECT_TRUE(tuned->record.complete);
}

TEST_F(TunerTest, WhatALoadedMachineSaidIsTriedAgain) {
  runner_.load = 0.4;
  ASSERT_TRUE(Run({80000, 40000, 20000, 60000}).ok());
  EXPECT_TRUE(journal_.stored.back().complete) << "the machine had cores left";
  options_.earlier = journal_.stored.back().search;
  options_.incumbent = 2;
  runner_ = FakeRunner();
  ASSERT_TRUE(Run({80000, 40000, 20000, 10000}).ok());
  EXPECT_EQ(journal_.stored.back().best.trace, "t3");
}

TEST_F(TunerTest, AMachineWithoutCoresLeftCompletesNothingAtOnce) {
  for (int run = 1; run <= 3; ++run) {
    runner_ = FakeRunner();
    runner_.load = 0.8;
    ASSERT_TRUE(Run({80000, 40000, 20000}).ok());
    const TuningRecord& record = journal_.stored.back();
    EXPECT_EQ(record.complete, run == 3) << run;
    EXPECT_THAT(SearchText(record), HasSubstr("other programs used 80 % of the cores"));
    options_.earlier = record.search;
    options_.incumbent = 2;
  }
}

TEST_F(TunerTest, ASmallBudgetIsSpentOnWhatThePastPromises) {
  std::vector<std::vector<int>> features;
  std::vector<double> us;
  for (int first = 0; first < 12; ++first) {
    for (int second = 0; second < 12; ++second) {
      features.push_back({first, 12 + second});
      us.push_back(20000 * (1 + (first * 5 + 7) % 12) * (1 + (second * 7 + 3) % 12));
    }
  }
  options_.budget_s = 60;  // compiling all takes a quarter of that, running all minutes
  const absl::StatusOr<Tuned> tuned = Run(us, /*baseline=*/0, features);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, std::min_element(us.begin(), us.end()) - us.begin());
  EXPECT_GE(tuned->record.best.timing.samples, 4);
}

TEST_F(TunerTest, HalfOfTheBudgetIsForTheBestOfWhatWasSeen) {
  options_.budget_s = 10;
  const absl::StatusOr<Tuned> tuned = Run(std::vector<double>(100, 100000));
  ASSERT_TRUE(tuned.ok());
  EXPECT_FALSE(tuned->record.complete);
  EXPECT_GE(tuned->record.best.timing.samples, 2);
}

TEST_F(TunerTest, WhatMeasuringLeavesOfTheBudgetIsForTheRest) {
  options_.budget_s = 16;
  std::vector<double> us(60, 60000);  // looking at all takes more than half
  us[0] = 10000;
  const absl::StatusOr<Tuned> tuned = Run(us);
  ASSERT_TRUE(tuned.ok());
  EXPECT_EQ(tuned->best, 0);
  EXPECT_TRUE(tuned->record.complete);
  EXPECT_EQ(runner_.ever_loaded.size(), 60u);
}

TEST_F(TunerTest, LongChecksAreForLeaders) {
  options_.budget_s = 100;
  runner_.verify_s = 5;
  runner_.wrong_at_size = {3};
  const absl::StatusOr<Tuned> tuned = Run({100000, 50000, 40000, 20000, 90000, 80000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, 2) << "3 leads, and is wrong";
  EXPECT_EQ(tuned->variants[3].verdict, Verdict::kWrongAnswer);
  EXPECT_EQ(runner_.verified[2], 2) << "as it leads, and in the end";
  EXPECT_EQ(runner_.verified[4], 0);
  EXPECT_LE(runner_.verified[5], 1) << "it was tried first";
}

TEST_F(TunerTest, WhatIsStoredWhileTuningGoesOnWasVerifiedAtItsSize) {
  options_.budget_s = 100;
  runner_.verify_s = 5;
  runner_.wrong_at_size = {1};  // in a tie with the fastest, and simpler
  const absl::StatusOr<Tuned> tuned = Run({100000, 10100, 10000, 30000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  ASSERT_GE(journal_.stored.size(), 2u);
  for (const TuningRecord& record : journal_.stored) EXPECT_EQ(record.best.trace, "t2");
  EXPECT_EQ(tuned->variants[1].verdict, Verdict::kWrongAnswer);
}

TEST_F(TunerTest, ATinyBudgetStillMeasuresTheBaseline) {
  options_.budget_s = 0;
  const absl::StatusOr<Tuned> tuned = Run({100000, 50000});
  ASSERT_TRUE(tuned.ok());
  EXPECT_EQ(tuned->best, 0);
  EXPECT_EQ(runner_.ever_loaded, std::set<int>({0}));
}

TEST_F(TunerTest, AnInterruptKeepsWhatWasMeasured) {
  options_.interrupted = [this] { return runner_.timed[2] >= 2; };
  const absl::StatusOr<Tuned> tuned = Run({100000, 10000, 40000, 50000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, 2);
  EXPECT_FALSE(tuned->record.complete);
  EXPECT_EQ(tuned->variants[1].reason, "interrupted") << "looked at last";
  EXPECT_EQ(journal_.stored.back().best.trace, "t2");
}

TEST_F(TunerTest, AnInterruptBeforeAnythingWasMeasuredIsCancelled) {
  options_.interrupted = [] { return true; };
  EXPECT_EQ(Run({1, 2}).status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(journal_.stored, IsEmpty());
}

}  // namespace
}  // namespace coconet
