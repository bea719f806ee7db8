#include "autotune/search/tuner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A world of one rank.
class SoloExchange final : public Exchange {
 public:
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override {
    if (fails_at == ++calls) return absl::DeadlineExceededError("a peer did not come");
    return std::vector<std::string>{std::string(mine)};
  }
  int calls = 0, fails_at = -1;
};

/// Variants that take a given time, on a clock of their own.
class FakeRunner final : public VariantRunner {
 public:
  absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& stop) override {
    std::vector<std::optional<Failure>> out;
    for (int v : variants) {
      if (!stop()) now_s += 0.1;
      compiled.push_back(v);
      if (stop()) {
        out.push_back(Failure{Verdict::kNotMeasured, ""});
      } else if (compile_errors.count(v) != 0) {
        out.push_back(Failure{Verdict::kCompileError, "expected ';'"});
      } else {
        out.push_back(std::nullopt);
      }
    }
    return out;
  }
  absl::StatusOr<std::optional<Failure>> Load(int v) override {
    EXPECT_THAT(compiled, Contains(v));
    RETURN_IF_ERROR(Going());
    EXPECT_TRUE(loaded.insert(v).second);
    ever_loaded.insert(v);
    if (wrong.count(v) == 0) return std::nullopt;
    loaded.erase(v);
    return Failure{Verdict::kWrongAnswer, absl::StrCat("p[", v, "]: want 1, have 2")};
  }
  absl::StatusOr<std::optional<Failure>> Verify(int v) override {
    EXPECT_THAT(loaded, Contains(v));
    RETURN_IF_ERROR(Going());
    now_s += verify_s;
    ++verified[v];
    if (wrong_at_size.count(v) != 0 || (wrong_in_the_end.count(v) != 0 && verified[v] > 1)) {
      return Failure{Verdict::kWrongAnswer, "p[7]: want 1, have 2"};
    }
    return std::nullopt;
  }
  Trust TrustIn(int v) const override {
    EXPECT_THAT(loaded, Contains(v));
    EXPECT_GT(verified.count(v), 0u) << "stored before it was verified at its size: " << v;
    return {absl::StrCat("code of ", v), "here", "all", 1700000000};
  }
  absl::StatusOr<Sample> Time(int v, int warm_up, int steps) override {
    EXPECT_THAT(loaded, Contains(v));
    RETURN_IF_ERROR(Going());
    ++timed[v];
    now_s += us[v] * (warm_up + steps) / 1e6;
    if (crashes_after.count(v) != 0 && timed[v] > crashes_after[v])
      return Sample{.failure = Failure{Verdict::kRunError, "crashed"}};
    if (time_outs.count(v) != 0 && time_outs[v]-- > 0)
      return Sample{.failure = Failure{Verdict::kTimedOut, "waited in vain"}};
    double cold = timed[v] == 1 ? 1.2 : 1;
    if (v == busy_from && timed[v] == 1) busy_left = busy_calls;
    if (busy_left-- > 0) cold *= 12;
    return Sample{.us = us[v] * cold * (1 + std::abs(noise(random))), .failure = {}};
  }
  absl::StatusOr<double> LoadByOthers() override { return load; }
  void Unload(int v) override { EXPECT_EQ(loaded.erase(v), 1u); }
  /// Of each call that runs a variant: whether the ranks still have each other.
  absl::Status Going() {
    lost |= --calls_left == 0;
    return calls_left == 0 ? absl::AbortedError("rank 1 left: data race") : absl::OkStatus();
  }

  int calls_left = 0;  // 0: any number
  bool lost = false;
  std::vector<double> us;
  std::normal_distribution<double> noise{0, 0.01};
  std::mt19937_64 random{5};
  std::set<int> compile_errors, wrong, wrong_at_size, wrong_in_the_end;
  std::map<int, int> crashes_after;
  std::map<int, int> time_outs;  // number of the first calls of Time that fail so
  double now_s = 0, verify_s = 0.001;
  /// From this variant's first call of Time on, another job slows so many calls down.
  int busy_from = -1, busy_calls = 0, busy_left = 0;
  double load = 0;
  std::vector<int> compiled;
  std::set<int> loaded, ever_loaded;
  std::map<int, int> verified, timed;
};

class FakeJournal final : public TuningJournal {
 public:
  std::vector<VariantResult> Failures(const std::string&) override { return failures; }
  std::vector<VariantResult> Variants(const std::string&) override { return known; }
  void Begin(const std::string&, const VariantResult& v) override { in_flight.insert(v.trace); }
  void End(const std::string&, const VariantResult& v) override { in_flight.erase(v.trace); }
  void Fail(const std::string&, const VariantResult& v) override {
    EXPECT_TRUE(FailsForGood(v.verdict) || MayPass(v.verdict)) << Name(v.verdict);
    failed.push_back(absl::StrCat(v.trace, ": ", Name(v.verdict)));
  }
  void Store(const TuningRecord& record, absl::Span<const VariantResult> variants) override {
    EXPECT_TRUE(Validate(record).ok()) << Validate(record);
    EXPECT_THAT(variants, Contains(record.best));
    EXPECT_THAT(variants, Contains(record.baseline));
    stored.push_back(record);
    known.assign(variants.begin(), variants.end());
  }
  std::vector<VariantResult> failures, known;
  std::set<std::string> in_flight;
  std::vector<std::string> failed;
  std::vector<TuningRecord> stored;
};

class TunerTest : public ::testing::Test {
 protected:
  /// Variants t0, t1, ... with these times. They share no features unless `features` says which.
  absl::StatusOr<Tuned> Run(std::vector<double> us, int baseline = 0,
                            std::vector<std::vector<int>> features = {}) {
    runner_.us = us;
    std::vector<Entrant> entrants;
    for (size_t i = 0; i < us.size(); ++i) {
      Entrant e;
      e.result.trace = absl::StrCat("t", i);
      e.result.schedule = absl::StrCat("S", i);
      e.features = features.empty() ? std::vector<int>{static_cast<int>(i)} : features[i];
      e.result.protocol = "library";
      e.result.bytes = 10000 - static_cast<int>(i);
      entrants.push_back(e);
    }
    options_.key_text = "program: x\n";
    options_.key = Fingerprint(options_.key_text);
    options_.seconds = [this] { return runner_.now_s; };
    options_.journal = &journal_;
    absl::StatusOr<Tuned> tuned = Tune(std::move(entrants), baseline, runner_, exchange_, options_);
    // Where contact is lost while a variant runs, it may be the variant's doing.
    EXPECT_TRUE(runner_.lost || exchange_.fails_at > 0 || journal_.in_flight.empty());
    if (tuned.ok()) {
      EXPECT_EQ(runner_.loaded, std::set<int>{tuned->best});
    }
    return tuned;
  }
  FakeRunner runner_;
  FakeJournal journal_;
  SoloExchange exchange_;
  TunerOptions options_;
};

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

TEST_F(TunerTest, TheIncumbentIsTimedBesideWhatIsTried) {
  options_.incumbent = 7;
  options_.budget_s = 0.5;
  const absl::StatusOr<Tuned> tuned = Run({100000, 1, 1, 1, 1, 1, 1, 50000});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_GE(tuned->variants[7].timing.samples, 1);
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
