#include "autotune/session/online/explorer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace coconet {
namespace {

/// A job on a machine whose clock is simulated.
struct Job {
  std::vector<double> step_us;      // by variant: the true time of a step
  std::vector<double> expected_us;  // as it was estimated; empty: the true ones
  double noise = 0.03;              // standard deviation of the logarithm of a time
  double spike = 0.01;              // share of steps that take six times as long
  double spell = 0;  // share of spells of 300 calls in which all takes three times as long
  double agreement_us = 20;
  uint64_t seed = 1;
  /// By what a call's time is multiplied, without noise; empty: by noise, spikes and spells.
  std::function<double(int variant, std::mt19937_64& random)> factor = nullptr;
  std::function<double(std::mt19937_64& random)> agreement_factor = nullptr;
};

struct Ran {
  std::vector<int> variants;   // by call
  std::vector<double> excess;  // by call, in steps of the incumbent
  Explorer explorer;
  double worst = 0;  // excess over any window, as a share
};

Ran Simulate(const Job& job, int calls) {
  Ran ran{{},
          {},
          Explorer(job.expected_us.empty() ? job.step_us : job.expected_us, job.agreement_us,
                   {.seed = job.seed})};
  std::mt19937_64 random(job.seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<double> readings;
  double slowness = 1, last_agreement_us = job.agreement_us;
  for (int call = 0; call < calls; ++call) {
    if (call % 300 == 0) slowness = uniform(random) < job.spell ? 3 : 1;
    const int incumbent = ran.explorer.incumbent();
    const Explorer::Call next = ran.explorer.Next();
    double factor = 0;
    if (job.factor) {
      factor = job.factor(next.variant, random);
    } else {
      factor = slowness * std::exp(job.noise * normal(random));
      if (uniform(random) < job.spike) factor *= 6;
    }
    if (next.timed) readings.push_back(factor * job.step_us[next.variant]);
    ran.variants.push_back(next.variant);
    const double counted = job.factor ? factor : 1;  // noise is no cost of exploring
    ran.excess.push_back(counted * job.step_us[next.variant] / job.step_us[incumbent] - 1);
    if (!next.agrees) continue;
    const double agreement_us =
        job.agreement_us * (job.agreement_factor ? job.agreement_factor(random) : 1);
    ran.excess.back() += agreement_us / job.step_us[incumbent];
    ran.explorer.Agree(readings, std::exchange(last_agreement_us, agreement_us));
    readings.clear();
  }
  // A faster variant does not make up for a slower one.
  double window = 0;
  for (size_t i = 0; i < ran.excess.size(); ++i) {
    window += std::max(ran.excess[i], 0.0);
    if (i >= 100) window -= std::max(ran.excess[i - 100], 0.0);
    ran.worst = std::max(ran.worst, window / 100);
  }
  return ran;
}

TEST(Explorer, FindsTheFastestAtABoundedCost) {
  const Job jobs[] = {
      {.step_us = {1000, 990, 1100, 900, 1500, 1005, 1900, 950}},
      {.step_us = {1000, 700}},
      {.step_us = {1000, 1300, 1200, 1900, 1990}},
      {.step_us = {1000, 960, 930, 905, 900}, .spell = 0.2},
      {.step_us = {1000, 1200, 880, 1100}, .noise = 0.15, .spike = 0.05},
      {.step_us = {100, 80, 120, 95}, .agreement_us = 150},
      {.step_us = {1000, 1000, 1000, 1000, 1000}},
  };
  for (size_t j = 0; j < std::size(jobs); ++j) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Job job = jobs[j];
      job.seed = seed;
      const Ran ran = Simulate(job, 10'000);
      const double best = *std::min_element(job.step_us.begin(), job.step_us.end());
      EXPECT_LE(job.step_us[ran.explorer.incumbent()], 1.03 * best) << j << " seed " << seed;
      EXPECT_LE(ran.worst, 0.05) << j << " seed " << seed;
      EXPECT_LE(ran.explorer.switches(), 4) << j << " seed " << seed;
    }
  }
}

TEST(Explorer, KeepsTheBoundWhereExpectationsAreWrong) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Job job{.step_us = {1000, 4100, 2500, 800, 3000, 4000}};
    job.expected_us = {1000, 1900, 1200, 1100, 1000, 700};
    job.spell = 0.2;
    job.seed = seed;
    const Ran ran = Simulate(job, 10'000);
    EXPECT_LE(ran.worst, 0.05) << "seed " << seed;
    EXPECT_EQ(ran.explorer.incumbent(), 3) << "seed " << seed;
    for (int v : {1, 2, 4, 5})
      EXPECT_EQ(ran.explorer.state(v), Explorer::State::kTooSlow) << v << " seed " << seed;
  }
}

TEST(Explorer, KeepsTheBoundWhateverCallsTakeUpToTheirMost) {
  // Calls lure for a while, and take the most that is reserved for them then: 1.75 times as long as
  // the fastest. So do agreements.
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Job job{.step_us = {1000, 1020, 1140, 1001, 1100}, .seed = seed};
    job.agreement_us = 10.0 * static_cast<double>(1 + seed % 7 * 20);
    const double share = static_cast<double>(seed % 10) / 9;
    int left = 0;
    double last = 1;
    job.factor = [&](int variant, std::mt19937_64& random) {
      if (variant == 0) return 1.0;
      if (left-- <= 0) {
        left = static_cast<int>(random() % 40);
        last = std::uniform_real_distribution<double>()(random) < share ? 1.75 : 1;
      }
      return last;
    };
    job.agreement_factor = [](std::mt19937_64& random) { return random() % 2 == 0 ? 1.0 : 1.5; };
    const Ran ran = Simulate(job, 10'000);
    EXPECT_LE(ran.worst, 0.05 + 1e-9) << "seed " << seed;
    EXPECT_GT(ran.explorer.explored(), 0) << "seed " << seed;
    EXPECT_EQ(ran.explorer.incumbent(), 0) << "seed " << seed;
  }
}

TEST(Explorer, DefersAllTrialsAfterACallThatTakesMoreThanItsMost) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Job job{.step_us = {1000, 1010, 1005}, .seed = seed};
    job.factor = [](int variant, std::mt19937_64& random) {
      return variant == 1 && random() % 20 == 0 ? 50.0 : 1.0;
    };
    const Ran ran = Simulate(job, 10'000);
    int overruns = 0;
    for (int i = 0; i < 10'000; ++i) {
      if (ran.excess[i] < 5) continue;
      ++overruns;
      // The two calls behind it may be of its own trial.
      for (int later = i + 3; later < std::min(i + 100, 10'000); ++later)
        EXPECT_EQ(ran.variants[later], 0) << later << " after " << i << " seed " << seed;
    }
    EXPECT_LE(overruns, 7) << "it is dropped, seed " << seed;
    EXPECT_EQ(ran.explorer.state(2), Explorer::State::kSlower) << "seed " << seed;
  }
}

TEST(Explorer, StopsAVariantThatBecomesSlow) {
  for (int calls_before : {1, 4, 10, 30}) {
    int calls = 0;
    Job job{.step_us = {1000, 1002}};
    job.factor = [&](int variant, std::mt19937_64&) {
      return variant == 1 && ++calls > calls_before ? 3.0 : 1.0;
    };
    const Ran ran = Simulate(job, 5000);
    EXPECT_EQ(ran.explorer.state(1), Explorer::State::kTooSlow) << calls_before;
    EXPECT_LE(calls, calls_before + 9) << "three trials show it";
    EXPECT_LE(ran.worst, 0.05 + 0.06) << "one trial is beyond the bound, by three calls";
  }
}

TEST(Explorer, DoesNotBlameAVariantForAMachineThatIsSlowAtTimes) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Job job{.step_us = {1000, 850}, .seed = seed};
    job.factor = [](int, std::mt19937_64& random) { return random() % 16 == 0 ? 4.0 : 1.0; };
    EXPECT_EQ(Simulate(job, 10'000).explorer.incumbent(), 1) << "seed " << seed;
  }
}

TEST(Explorer, TriesSlowerVariantsInFewerCalls) {
  const auto calls = [](double us) {
    return Simulate({.step_us = {1000, us}, .noise = 0.01, .spike = 0}, 10'000).explorer.explored();
  };
  EXPECT_GT(calls(1000), 3 * 12) << "compared until it is decided on";
  EXPECT_LE(calls(1200), 1 + 4 * 3) << "four trials show that it is clearly slower";
  EXPECT_LE(calls(1700), 1 + 4 * 2) << "whose calls are fewer";
  EXPECT_EQ(calls(1950), 1) << "no window admits more than its first call";
}

TEST(Explorer, NeverRunsWhatIsExpectedToTakeTenTimesAsLong) {
  const Ran ran = Simulate({.step_us = {1000, 10'000, 950}}, 5000);
  EXPECT_EQ(std::count(ran.variants.begin(), ran.variants.end(), 1), 0);
  EXPECT_EQ(ran.explorer.state(1), Explorer::State::kTooSlow);
  EXPECT_EQ(ran.explorer.incumbent(), 2);
  EXPECT_LE(ran.worst, 0.05);
}

TEST(Explorer, DoesNotFlipFlopBetweenTies) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Job job{.step_us = {1000, 1000, 1003, 997}, .noise = 0.1, .spike = 0.03, .spell = 0.3};
    job.seed = seed;
    EXPECT_LE(Simulate(job, 20'000).explorer.switches(), 1) << "seed " << seed;
  }
}

TEST(Explorer, EndsWithCallsOfTheIncumbentAlone) {
  const Ran ran = Simulate({.step_us = {1000, 900, 1100}}, 20'000);
  ASSERT_TRUE(ran.explorer.finished());
  EXPECT_EQ(ran.explorer.incumbent(), 1);
  EXPECT_EQ(ran.explorer.state(0), Explorer::State::kSlower) << "the old incumbent was tried again";
  EXPECT_EQ(std::count(ran.variants.begin() + 10'000, ran.variants.end(), 1), 10'000);
  const Timing timing = ran.explorer.timing(1);
  EXPECT_GT(timing.samples, 10);
  EXPECT_NEAR(timing.median_us, 900, 50);
}

TEST(Explorer, DecidesByItsReadingsAlone) {
  const Job job{.step_us = {1000, 950, 900, 1100}};
  EXPECT_EQ(Simulate(job, 5000).variants, Simulate(job, 5000).variants);
}

TEST(Explorer, DoesNotTryAFirstCallThatMayExceedTheWindow) {
  // The agreement takes up to 1.8 of the 5 steps that a window admits, so twice 1.9 does not fit.
  const Ran ran = Simulate({.step_us = {1000, 1900, 1100}, .agreement_us = 1200}, 5000);
  EXPECT_EQ(std::count(ran.variants.begin(), ran.variants.end(), 1), 0);
  EXPECT_EQ(ran.explorer.state(1), Explorer::State::kTooSlow);
  EXPECT_GT(std::count(ran.variants.begin(), ran.variants.end(), 2), 0);
}

TEST(Explorer, RefusesWhereAnAgreementTakesTooLong) {
  const Ran ran = Simulate({.step_us = {1, 0.5}, .agreement_us = 20}, 1000);
  EXPECT_TRUE(ran.explorer.finished());
  EXPECT_NE(ran.explorer.refusal(), "");
  EXPECT_EQ(ran.explorer.explored(), 0);
}

}  // namespace
}  // namespace coconet
