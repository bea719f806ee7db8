#include "autotune/simulation/bounds.h"

#include <algorithm>
#include <limits>
#include <random>

#include "absl/algorithm/container.h"
#include "autotune/simulation/simulate.h"
#include "autotune/simulation/testing/random_tasks.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr TaskKind kCollective = TaskKind::kCollective;

TEST(Bounds, CountWorkThatMustComeBeforeAndAfterALane) {
  // Two gradients are computed one after the other on one lane, reduced on the other, and applied.
  const TaskGraph graph{.tasks = {{.us = 10},
                                  {.us = 10},
                                  {.kind = kCollective, .us = 30, .lane = 1, .after = {0}},
                                  {.kind = kCollective, .us = 30, .lane = 1, .after = {1}},
                                  {.us = 5, .after = {2}},
                                  {.us = 5, .after = {3}}},
                        .lanes = {{"compute"}, {"link"}}};
  const absl::StatusOr<Bounds> bounds = BoundsOf(graph);
  ASSERT_TRUE(bounds.ok()) << bounds.status();
  EXPECT_EQ(bounds->full_overlap_us, 60);
  EXPECT_EQ(bounds->dependencies_us, 75);  // 10, both collectives, 5
  EXPECT_EQ(Simulate(graph)->us, 75);
}

TEST(Bounds, CountAllWorkOfALaneBeforeATask) {
  // Both computations come before the collective, on one lane: 20, not 10, before it.
  const TaskGraph graph{
      .tasks = {{.us = 10}, {.us = 10}, {.kind = kCollective, .us = 1, .lane = 1, .after = {0, 1}}},
      .lanes = {{"compute"}, {"link"}}};
  EXPECT_EQ(BoundsOf(graph)->dependencies_us, 21);
}

TEST(Bounds, CountWhatContentionCosts) {
  // 10 of computation alone; then 20 beside a collective of 20, each of which takes 1.25 times as
  // long: both end at 35.
  const TaskGraph graph{.tasks = {{.us = 10},
                                  {.us = 20, .after = {0}},
                                  {.kind = kCollective, .us = 20, .lane = 1, .after = {0}}},
                        .lanes = {{"compute"}, {"link"}}};
  const Contention contention{1.25, 1.25};
  EXPECT_DOUBLE_EQ(BoundsOf(graph, contention)->dependencies_us, 35);
  EXPECT_DOUBLE_EQ(Simulate(graph, {.contention = contention})->us, 35);
}

TEST(Bounds, RefuseCycles) {
  const TaskGraph graph{.tasks = {{.us = 1, .after = {1}}, {.us = 1, .after = {0}}},
                        .lanes = {{"compute"}}};
  EXPECT_EQ(BoundsOf(graph).status().message(),
            "bounds: 2 of 2 tasks wait for each other; want dependencies without cycles");
}

/// The least end over all orders of all lanes.
double BestOfAllOrders(TaskGraph graph, const Contention& contention, size_t lane = 0) {
  if (lane == graph.lanes.size()) {
    const absl::StatusOr<Timeline> timeline = Simulate(graph, {.contention = contention});
    return timeline.ok() ? timeline->us : std::numeric_limits<double>::infinity();
  }
  std::vector<int>& order = graph.lanes[lane].order;
  for (int t = 0; t < graph.size(); ++t) {
    if (graph.tasks[t].lane == static_cast<int>(lane)) order.push_back(t);
  }
  double best = std::numeric_limits<double>::infinity();
  do {
    best = std::min(best, BestOfAllOrders(graph, contention, lane + 1));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Bounds, LieBelowEveryOrderAndOftenMeetTheBest) {
  const uint64_t seed = FreshTaskSeed();
  std::mt19937_64 random(seed);
  int met = 0;
  constexpr int kGraphs = 60;
  for (int i = 0; i < kGraphs; ++i) {
    const TaskGraph graph = RandomTasks(random, {.tasks = 7, .lanes = 2, .dependencies = 8});
    const Contention contention =
        i % 2 == 0 ? Contention{}
                   : Contention{1 + (random() % 10) / 10.0, 1 + (random() % 10) / 10.0};
    const double best = BestOfAllOrders(graph, contention);
    const absl::StatusOr<Bounds> bounds = BoundsOf(graph, contention);
    ASSERT_TRUE(bounds.ok()) << bounds.status();
    EXPECT_LE(bounds->dependencies_us, best + 1e-9) << "COCONET_SEED=" << seed << " graph " << i;
    EXPECT_LE(bounds->full_overlap_us, bounds->dependencies_us + 1e-9);
    met += bounds->dependencies_us > best - 1e-9;
  }
  EXPECT_GT(met, kGraphs / 2) << "COCONET_SEED=" << seed;
}

TEST(Bounds, LieBelowLargeRandomGraphsUnderContention) {
  const uint64_t seed = FreshTaskSeed();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100; ++i) {
    const TaskGraph graph = RandomTasks(random, {.tasks = 200, .lanes = 3, .dependencies = 300});
    const Contention contention{1 + (random() % 100) / 60.0, 1 + (random() % 100) / 60.0};
    const absl::StatusOr<Timeline> timeline = Simulate(graph, {.contention = contention});
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    EXPECT_LE(BoundsOf(graph, contention)->dependencies_us, timeline->us + 1e-6)
        << "COCONET_SEED=" << seed << " graph " << i;
  }
}

TEST(PreemptiveEnd, IsTheGreatestBoundOfASubset) {
  // The least head, the work and the least tail of a subset; the greatest of all subsets is the end
  // of the preemptive schedule (Carlier, 1982).
  const uint64_t seed = FreshTaskSeed();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    std::vector<MachineJob> jobs(1 + random() % 8);
    for (MachineJob& job : jobs)
      job = {static_cast<double>(random() % 20), static_cast<double>(random() % 9),
             static_cast<double>(random() % 20)};
    double greatest = 0;
    for (size_t set = 1; set < size_t{1} << jobs.size(); ++set) {
      double head = 1e9, us = 0, tail = 1e9;
      for (size_t j = 0; j < jobs.size(); ++j) {
        if ((set >> j & 1) == 0) continue;
        head = std::min(head, jobs[j].head);
        us += jobs[j].us;
        tail = std::min(tail, jobs[j].tail);
      }
      greatest = std::max(greatest, head + us + tail);
    }
    EXPECT_EQ(PreemptiveEnd(jobs), greatest) << "COCONET_SEED=" << seed << " jobs " << i;
  }
}

}  // namespace
}  // namespace coconet
