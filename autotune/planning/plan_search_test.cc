#include "autotune/planning/plan_search.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "autotune/cost/nominal_cost_model.h"
#include "autotune/planning/first_plan.h"
#include "autotune/planning/plan_tasks.h"
#include "autotune/simulation/testing/random_tasks.h"
#include "coconet/workloads/training_steps.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Iteration {
  explicit Iteration(NominalRates with = {})
      : rates(with),
        graph(*PlanGraph::Of(*InitialSchedule(*GptStep({.layers = 3, .width = 32, .heads = 2})),
                             Target(2, 2), rates)) {}
  FoundPlans Search(PlanStrategy strategy, int64_t evaluations, uint64_t seed = 1) const {
    return SearchPlans(graph, strategy,
                       {.seconds = kNoLimit, .evaluations = evaluations, .seed = seed});
  }

  NominalCostModel rates;
  PlanGraph graph;
};

constexpr PlanStrategy kStrategies[] = {PlanStrategy::kDirected, PlanStrategy::kBacktracking};

TEST(PlanSearch, IsAFunctionOfItsSeed) {
  const Iteration iteration;
  const uint64_t seed = FreshTaskSeed();
  for (PlanStrategy strategy : kStrategies) {
    const double us = iteration.Search(strategy, 300, seed).plans[0].us;
    EXPECT_EQ(iteration.Search(strategy, 300, seed).plans[0].us, us) << "COCONET_SEED=" << seed;
  }
}

TEST(PlanSearch, ReturnsPlansWithTheTimesTheySimulate) {
  const Iteration iteration;
  for (PlanStrategy strategy : kStrategies) {
    const FoundPlans found = iteration.Search(strategy, 500);
    for (const FoundPlan& plan : found.plans) {
      const absl::StatusOr<Timeline> timeline =
          Simulate(TasksOf(plan.plan), {.contention = plan.plan.graph().contention()});
      ASSERT_TRUE(timeline.ok()) << timeline.status();
      EXPECT_NEAR(timeline->us, plan.us, 1e-6);
      EXPECT_LE(BoundOf(plan.plan), plan.us + 1e-6);
    }
    for (size_t i = 1; i < found.plans.size(); ++i)
      EXPECT_LE(found.plans[i - 1].us, found.plans[i].us);
    EXPECT_EQ(found.progress.us, found.plans[0].us);
  }
}

TEST(PlanSearch, IsNeverWorseThanBacktrackingWithAsManyEvaluations) {
  const uint64_t seed = FreshTaskSeed();
  for (double link : {100.0, 300.0, 1000.0}) {
    const Iteration iteration({.link_bytes_per_us = link});
    EXPECT_LE(iteration.Search(PlanStrategy::kDirected, 600, seed).plans[0].us,
              iteration.Search(PlanStrategy::kBacktracking, 600, seed).plans[0].us)
        << "COCONET_SEED=" << seed << " link " << link;
  }
}

TEST(PlanSearch, ImprovesWithEvaluations) {
  const Iteration iteration({.link_bytes_per_us = 100});
  const double few = iteration.Search(PlanStrategy::kDirected, 20).plans[0].us;
  const double many = iteration.Search(PlanStrategy::kDirected, 5000).plans[0].us;
  EXPECT_LT(many, few);
}

TEST(PlanSearch, EndsOnceItIsSettled) {
  const Iteration iteration;
  constexpr int64_t kMost = 200'000;
  const auto evaluations = [&](double settled) {
    return SearchPlans(iteration.graph, PlanStrategy::kDirected,
                       {.seconds = kNoLimit, .evaluations = kMost, .settled = settled, .seed = 1})
        .progress.evaluations;
  };
  const int64_t early = evaluations(1.01), late = evaluations(3);
  EXPECT_GT(early, 4096);
  EXPECT_LE(early, late);
  EXPECT_LT(early, kMost);
}

TEST(PlanSearch, ReportsItsProgress) {
  const Iteration iteration;
  std::vector<PlanProgress> reports;
  SearchPlans(iteration.graph, PlanStrategy::kDirected,
              {.seconds = kNoLimit, .evaluations = 200, .progress = [&](const PlanProgress& p) {
                 reports.push_back(p);
               }});
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports.back().evaluations, 200);
  EXPECT_GE(reports.back().gap(), -1e-9);
}

TEST(FirstPlan, FusesWhatSaves) {
  const Iteration iteration;
  const IterationPlan plain(iteration.graph), fused = FusedPlan(iteration.graph);
  const auto work = [](const IterationPlan& plan) {
    double us = 0;
    for (int group : plan.order(0)) us += plan.group(group).us;
    return us;
  };
  EXPECT_LT(work(fused), work(plain));
  EXPECT_LT(fused.order(0).size(), plain.order(0).size() / 2);
}

TEST(FirstPlan, BucketsGradientsWhereLatencyCounts) {
  const Iteration iteration({.latency_us = 500, .link_bytes_per_us = 1e4});
  IterationPlan plan = FusedPlan(iteration.graph);
  const double before = OrderForGradients(plan);
  const size_t calls = plan.order(1).size();
  EXPECT_LT(MakeBuckets(plan), before);
  EXPECT_LT(plan.order(1).size(), calls);
}

}  // namespace
}  // namespace coconet
