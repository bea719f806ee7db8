#include "autotune/search/tuner.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "autotune/testing/tuner_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(TunerTest, WhatComesNextIsCompiledMeanwhile) {
  runner_.ahead = true;
  options_.search = SearchKind::kRacing;
  std::vector<double> us;
  for (int v = 0; v < 40; ++v) us.push_back(30000 - 500 * v);
  const absl::StatusOr<Tuned> tuned = Run(us);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, 39);
  EXPECT_EQ(SearchText(tuned->record), "complete: all 40 variants were tried");
  // The first batch and the baseline are compiled while nothing runs; the others before they are
  // asked for.
  std::set<int> ahead;
  for (const std::vector<int>& call : runner_.compiled_ahead)
    ahead.insert(call.begin(), call.end());
  EXPECT_EQ(ahead.size(), 40u - 1 - 8);
  EXPECT_THAT(runner_.compiled_ahead.back(), IsEmpty()) << "nothing is compiled in the end";
  std::set<int> tried;
  for (int v : runner_.compiled) EXPECT_TRUE(tried.insert(v).second) << "twice: " << v;
}

TEST_F(TunerTest, ThePriorSaysWhatIsTriedFirst) {
  options_.search = SearchKind::kRacing;
  prior_us_ = {100, 90, 10, 80, 5, 70};
  const absl::StatusOr<Tuned> tuned = Run({10000, 20000, 30000, 40000, 50000, 60000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, 0) << "not what wins";
  EXPECT_THAT(runner_.compiled, ElementsAre(0, 4, 2, 5, 3, 1));
}

TEST_F(TunerTest, ALongFirstStepFarBehindTheBestIsASample) {
  for (bool warm : {false, true}) {
    runner_.warm = warm;
    runner_.timed.clear();
    runner_.loaded.clear();
    const absl::StatusOr<Tuned> tuned = Run({10000, 30000, 15000, 11000});
    ASSERT_TRUE(tuned.ok()) << tuned.status();
    EXPECT_EQ(tuned->best, 0);
    EXPECT_THAT(tuned->variants[1].reason, HasSubstr("as long as the best"));
    EXPECT_EQ(runner_.timed[1], warm ? 1 : 2);
    EXPECT_EQ(runner_.timed[2], 2) << "1.8 times the best's, cold";
    EXPECT_GT(runner_.timed[3], 2);
  }
  // Where steps are short, it may have been delayed.
  runner_.loaded.clear();
  runner_.timed.clear();
  runner_.busy_from = 1;
  runner_.busy_calls = 1;
  const absl::StatusOr<Tuned> short_steps = Run({1000, 990});
  ASSERT_TRUE(short_steps.ok()) << short_steps.status();
  EXPECT_THAT(short_steps->variants[1].reason, Not(HasSubstr("as long as the best")));
}

TEST_F(TunerTest, WhatWasLeftOutIsCounted) {
  options_.left_out = 120;
  const absl::StatusOr<Tuned> tuned = Run({10000, 20000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(SearchText(tuned->record),
            "complete: all 2 variants were tried; 120 more were left out, as others are expected "
            "to be faster");
}

TEST_F(TunerTest, TheFastestIsStored) {
  const absl::StatusOr<Tuned> tuned = Run({50000, 30000, 13000, 14000, 200000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, 2);
  EXPECT_EQ(tuned->record.best.trace, "t2");
  EXPECT_EQ(tuned->record.baseline.trace, "t0");
  EXPECT_EQ(tuned->record.necessary_bytes, 9996);
  EXPECT_EQ(tuned->record.variants, 5);
  EXPECT_THAT(tuned->record.runner_up, HasSubstr("S"));
  EXPECT_TRUE(tuned->record.complete);
  EXPECT_TRUE(journal_.stored.back() == tuned->record);
  EXPECT_EQ(runner_.verified[2], 2) << "again after the timing";
  EXPECT_EQ(runner_.verified[4], 0)
      << "hopeless from its first step: not verified at its real size";
  EXPECT_EQ(tuned->variants[4].verdict, Verdict::kPruned);
  EXPECT_THAT(tuned->variants[4].reason, HasSubstr("as long as the best"));
  EXPECT_EQ(SearchText(tuned->record), "complete: all 5 variants were tried");
  EXPECT_EQ(tuned->variants[0].verdict, Verdict::kMeasured);
}

TEST_F(TunerTest, WhatRanOnABusyMachineIsLookedAtAgain) {
  for (const int calls : {1, 12}) {
    runner_ = FakeRunner();
    runner_.busy_from = 3;
    runner_.busy_calls = calls;
    const absl::StatusOr<Tuned> tuned = Run({80000, 60000, 44800, 29600});
    ASSERT_TRUE(tuned.ok()) << tuned.status();
    EXPECT_EQ(tuned->best, 3) << calls;
  }
}

TEST_F(TunerTest, ATieGoesToTheBaseline) {
  const absl::StatusOr<Tuned> tuned = Run({101, 100, 130, 100.5});
  ASSERT_TRUE(tuned.ok());
  EXPECT_EQ(tuned->best, 0);
}

TEST_F(TunerTest, FailuresAreValues) {
  runner_.compile_errors = {1};
  runner_.wrong = {2};
  runner_.wrong_at_size = {3};
  runner_.crashes_after[4] = 3;
  runner_.crashes_after[5] = 0;
  const absl::StatusOr<Tuned> tuned = Run({100, 10, 10, 10, 50, 10, 60});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, 6);
  std::vector<std::string> verdicts;
  for (const VariantResult& v : tuned->variants)
    verdicts.push_back(absl::StrCat(Name(v.verdict), ": ", v.reason));
  EXPECT_THAT(verdicts, ElementsAre("measured: ", "compile error: expected ';'",
                                    "wrong answer: p[2]: want 1, have 2",
                                    "wrong answer: p[7]: want 1, have 2", "run error: crashed",
                                    "run error: crashed", "measured: "));
  for (const char* kept : {"t1: compile error", "t2: wrong answer", "t3: wrong answer",
                           "t4: run error", "t5: run error"}) {
    EXPECT_THAT(journal_.failed, Contains(kept));
  }
}

TEST_F(TunerTest, WhatMayPassIsTriedOnceMore) {
  runner_.time_outs = {{0, 1}, {2, 1}};
  const absl::StatusOr<Tuned> tuned = Run({100, 50, 10});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, 2);
  EXPECT_EQ(tuned->record.baseline.trace, "t0");
  EXPECT_TRUE(tuned->record.complete);
  EXPECT_THAT(journal_.failed, IsEmpty());
}

TEST_F(TunerTest, WhatFailsTwiceIsLeftToALaterRun) {
  runner_.time_outs[2] = 2;
  const absl::StatusOr<Tuned> tuned = Run({100, 50, 10});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, 1);
  EXPECT_FALSE(tuned->record.complete) << "a later run tries it again";
  EXPECT_EQ(tuned->variants[2].verdict, Verdict::kTimedOut);
  EXPECT_THAT(journal_.failed, ElementsAre("t2: timed out"));
}

TEST_F(TunerTest, WhatAllHaveIsNoVariantsFault) {
  runner_.time_outs = {{0, 99}, {1, 99}};
  runner_.wrong = {2};
  const absl::StatusOr<Tuned> tuned = Run({100, 50, 10});
  EXPECT_EQ(tuned.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(journal_.failed, IsEmpty());
}

TEST_F(TunerTest, WhatFailedBeforeIsNotTriedAgain) {
  VariantResult failed;
  failed.trace = "t1";
  failed.verdict = Verdict::kWrongAnswer;
  failed.reason = "wrong answer in an earlier run: p[3]";
  VariantResult died = failed;
  died.trace = "t0";
  died.verdict = Verdict::kQuarantined;
  died.reason = "the process died";
  journal_.failures = {failed, died};
  const absl::StatusOr<Tuned> tuned = Run({100, 10, 50});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, 2);
  EXPECT_EQ(runner_.ever_loaded, std::set<int>({2}));
  EXPECT_EQ(tuned->variants[0].reason, "the process died");
  EXPECT_EQ(tuned->variants[1].verdict, Verdict::kQuarantined);
  EXPECT_EQ(tuned->variants[1].reason, "wrong answer in an earlier run: p[3]");
  EXPECT_EQ(tuned->record.baseline.trace, "t2")
      << "the simplest that runs stands in for the baseline";
}

TEST_F(TunerTest, AWinnerThatTurnsOutWrongIsNotStored) {
  runner_.wrong_in_the_end = {2};
  const absl::StatusOr<Tuned> tuned = Run({100, 60, 50});
  ASSERT_TRUE(tuned.ok());
  EXPECT_EQ(tuned->best, 0) << "the other one was dropped long before";
  EXPECT_EQ(tuned->variants[2].verdict, Verdict::kWrongAnswer);
  EXPECT_THAT(journal_.failed, ElementsAre("t2: wrong answer"));
}

TEST_F(TunerTest, NothingRightIsAnError) {
  runner_.wrong = {0, 1};
  const absl::StatusOr<Tuned> tuned = Run({100, 60});
  EXPECT_EQ(tuned.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(
      std::string(tuned.status().message()),
      HasSubstr("none of the 2 variants runs and gives the right answer; the first, S0 (library,"));
  EXPECT_THAT(journal_.stored, IsEmpty());
}

TEST_F(TunerTest, ReasonsCompareWithTheBestOfAll) {
  for (options_.seed = 1; options_.seed <= 5; ++options_.seed) {
    runner_ = FakeRunner();
    const absl::StatusOr<Tuned> tuned = Run({80000, 60000, 40000, 20000, 10000, 5000});
    ASSERT_TRUE(tuned.ok());
    int pruned = 0;
    for (const VariantResult& v : tuned->variants) {
      if (v.verdict != Verdict::kPruned) continue;
      ++pruned;
      EXPECT_EQ(v.reason,
                absl::StrFormat("%.1fx as long as the best",
                                v.timing.median_us / tuned->record.best.timing.median_us));
    }
    EXPECT_GT(pruned, 2);
  }
}

TEST_F(TunerTest, ALargeSpaceIsSampled) {
  options_.budget_s = 1e6;
  options_.search = SearchKind::kModel;
  std::mt19937_64 random(8);
  std::vector<std::vector<int>> features;
  std::vector<double> us;
  std::vector<double> effects(60);
  std::uniform_real_distribution<double> uniform(1, 3);
  for (double& e : effects) e = uniform(random);
  for (int a = 0; a < 20; ++a) {
    for (int b = 20; b < 40; ++b) {
      for (int c = 40; c < 45; ++c) {
        features.push_back({a, b, c});
        us.push_back(1000 * effects[a] * effects[b] * effects[c]);
      }
    }
  }
  const absl::StatusOr<Tuned> tuned = Run(us, 0, features);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_TRUE(tuned->record.complete);
  EXPECT_LT(runner_.ever_loaded.size(), 400u);
  EXPECT_GE(tuned->record.search.drawn, 59);
  EXPECT_LE(us[tuned->best], 1.03 * *std::min_element(us.begin(), us.end()));
}

TEST_F(TunerTest, AnExhaustiveSearchTimesAllToTheEnd) {
  options_.budget_s = 1e6;
  options_.search = SearchKind::kExhaustive;
  const absl::StatusOr<Tuned> tuned = Run({100, 900, 300, 50, 400});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->best, 3);
  for (const VariantResult& v : tuned->variants) EXPECT_GE(v.timing.samples, 20) << v.trace;
}

TEST_F(TunerTest, SamplesOfQuickStepsAreLongEnough) {
  const absl::StatusOr<Tuned> tuned = Run({3, 0.5, 0.00001});
  ASSERT_TRUE(tuned.ok());
  EXPECT_EQ(tuned->best, 2);
  EXPECT_GT(runner_.now_s * 1e6, 20 * 1000) << "20 samples of a millisecond";
}

TEST_F(TunerTest, NoiseDoesNotChooseWhatIsClearlySlower) {
  runner_.noise = std::normal_distribution<double>(0, 0.06);
  int bad = 0;
  for (int seed = 0; seed < 40; ++seed) {
    runner_ = FakeRunner();
    runner_.random.seed(seed);
    runner_.noise = std::normal_distribution<double>(0, 0.06);
    options_.seed = seed;
    const absl::StatusOr<Tuned> tuned = Run({50000, 15500, 13000, 13100, 14600, 30000});
    ASSERT_TRUE(tuned.ok());
    bad += tuned->best != 2 && tuned->best != 3;
  }
  EXPECT_LE(bad, 2);
}

TEST_F(TunerTest, TimesThatSayNothingLeaveNoVariantOut) {
  options_.tries_all = true;
  runner_.verify_s = 5;
  const absl::StatusOr<Tuned> tuned = Run({100, 50000, 900000, 20000, 200, 700000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  for (int v = 0; v < 6; ++v) EXPECT_GT(runner_.verified[v], 0) << v;
  EXPECT_TRUE(tuned->record.complete);
}

TEST_F(TunerTest, LosingThePeersIsAnError) {
  for (int call = 1; call < 12; ++call) {
    runner_ = FakeRunner();
    exchange_.calls = 0;
    exchange_.fails_at = call;
    journal_.in_flight.clear();
    EXPECT_EQ(Run({100, 50}).status().code(), absl::StatusCode::kDeadlineExceeded) << call;
  }
}

// A kernel's mistake may end the world.
TEST_F(TunerTest, LosingThePeersInAVariantNamesIt) {
  std::set<std::string> told;
  for (int call = 1; call < 30; ++call) {
    runner_ = FakeRunner();
    runner_.calls_left = call;
    journal_.in_flight.clear();
    const absl::Status status = Run({100, 50}).status();
    told.insert(std::string(absl::IsAborted(status) ? status.message() : "going on"));
  }
  std::set<std::string> want;
  for (const char* variant : {"S0", "S1"}) {
    VariantResult words;
    words.schedule = variant, words.protocol = "library";
    for (const char* what : {"verifying @ at a small size", "timing @", "verifying @"}) {
      want.insert(absl::StrCat(absl::StrReplaceAll(what, {{"@", Words(words)}}),
                               ": rank 1 left: data race"));
    }
  }
  EXPECT_EQ(told, want);
}

}  // namespace
}  // namespace coconet
