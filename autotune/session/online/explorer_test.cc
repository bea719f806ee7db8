#include "autotune/session/online/explorer.h"

#include <algorithm>
#include <cmath>
#include <random>
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
  ExplorerOptions options = {};
};

struct Ran {
  std::vector<int> variants;   // by call
  std::vector<double> excess;  // by call, in steps of the incumbent
  Explorer explorer;
  double worst = 0;  // excess over any window, as a share
};

Ran Simulate(const Job& job, int calls) {
  ExplorerOptions options = job.options;
  options.seed = job.seed;
  Ran ran{
      {},
      {},
      Explorer(job.expected_us.empty() ? job.step_us : job.expected_us, job.agreement_us, options)};
  std::mt19937_64 random(job.seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<double> readings;
  double slowness = 1;
  for (int call = 0; call < calls; ++call) {
    if (call % 300 == 0) slowness = uniform(random) < job.spell ? 3 : 1;
    const int incumbent = ran.explorer.incumbent();
    const Explorer::Call next = ran.explorer.Next();
    double us = job.step_us[next.variant] * slowness * std::exp(job.noise * normal(random));
    if (uniform(random) < job.spike) us *= 6;
    if (next.timed) readings.push_back(us);
    ran.variants.push_back(next.variant);
    ran.excess.push_back(job.step_us[next.variant] / job.step_us[incumbent] - 1);
    if (!next.agrees) continue;
    ran.excess.back() += job.agreement_us / job.step_us[incumbent];
    ran.explorer.Agree(readings, job.agreement_us);
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

TEST(Explorer, RefusesWhereAnAgreementTakesTooLong) {
  const Ran ran = Simulate({.step_us = {1, 0.5}, .agreement_us = 20}, 1000);
  EXPECT_TRUE(ran.explorer.finished());
  EXPECT_NE(ran.explorer.refusal(), "");
  EXPECT_EQ(ran.explorer.explored(), 0);
}

}  // namespace
}  // namespace coconet
