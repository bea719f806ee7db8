#include "autotune/simulation/simulate.h"

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "autotune/simulation/testing/random_tasks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr TaskKind kComputation = TaskKind::kComputation, kCollective = TaskKind::kCollective;

std::string Intervals(const TaskGraph& graph, const SimulationOptions& options = {}) {
  const absl::StatusOr<Timeline> timeline = Simulate(graph, options);
  if (!timeline.ok()) return std::string(timeline.status().message());
  std::string text;
  for (const Timeline::Interval& i : timeline->tasks)
    absl::StrAppend(&text, i.begin, "-", i.end, " ");
  return absl::StrCat(text, "= ", timeline->us);
}

TEST(Simulate, BeginsATaskWhenItsLaneAndWhatItComesAfterAreDone) {
  const TaskGraph graph{
      .tasks = {{.label = "a", .us = 3},
                {.label = "b", .us = 4, .after = {0}},
                {.label = "r", .kind = kCollective, .us = 5, .lane = 1, .after = {0}},
                {.label = "u", .us = 1, .after = {2}}},
      .lanes = {{"compute"}, {"link"}}};
  EXPECT_EQ(Intervals(graph), "0-3 3-7 3-8 8-9 = 9");
}

TEST(Simulate, TakesReadyTasksByPriorityThenByNumber) {
  TaskGraph graph{.tasks = {{.us = 1}, {.us = 2}, {.us = 4, .priority = 1}, {.us = 8}},
                  .lanes = {{"compute"}}};
  EXPECT_EQ(Intervals(graph), "4-5 5-7 0-4 7-15 = 15");
}

TEST(Simulate, TakesTasksAsTheyBecomeReady) {
  TaskGraph graph{
      .tasks = {{.us = 2, .after = {2}, .priority = 9}, {.us = 5}, {.us = 1, .lane = 1}},
      .lanes = {{.name = "compute", .fifo = true}, {.name = "other"}}};
  graph.tasks.push_back({.us = 3});
  EXPECT_EQ(Intervals(graph), "8-10 0-5 0-1 5-8 = 10");
  graph.lanes[0].fifo = false;
  EXPECT_EQ(Intervals(graph), "5-7 0-5 0-1 7-10 = 10");
}

TEST(Simulate, FollowsTheOrderOfALane) {
  const TaskGraph graph{.tasks = {{.us = 1}, {.us = 2, .after = {2}}, {.us = 4, .lane = 1}},
                        .lanes = {{"compute", {1, 0}}, {"other"}}};
  EXPECT_EQ(Intervals(graph), "6-7 4-6 0-4 = 7");
}

TEST(Simulate, SlowsComputationBesideCollectivesAndTheReverse) {
  TaskGraph graph{.tasks = {{.us = 10}, {.kind = kCollective, .us = 10, .lane = 1}},
                  .lanes = {{"compute"}, {"link"}}};
  // Half as fast for 10 us, then 5 us alone.
  EXPECT_EQ(Intervals(graph, {.contention = {.computation = 2}}), "0-15 0-10 = 15");
  // 10 us at 4/5, then 2 us alone.
  EXPECT_EQ(Intervals(graph, {.contention = {.collective = 1.25}}), "0-10 0-12 = 12");
  // Two collectives share a link for 20 us.
  TaskGraph link = graph;
  link.tasks[0].kind = kCollective;
  EXPECT_EQ(Intervals(link, {.contention = {.collectives = 2}}), "0-20 0-20 = 20");
  graph.tasks[0].kind = TaskKind::kHost;
  EXPECT_EQ(Intervals(graph, {.contention = {.computation = 2, .collective = 2}}),
            "0-10 0-10 = 10");
}

TEST(Simulate, BeginsCollectivesWhenTheLastRankArrives) {
  const TaskGraph graph{
      .tasks = {{.us = 10}, {.kind = kCollective, .us = 5, .lane = 1, .after = {0}}},
      .lanes = {{"compute"}, {"link"}}};
  EXPECT_EQ(Intervals(graph, {.ranks = 2, .slowdowns = {1, 2}}), "0-10 20-25 0-20 20-25 = 25");
  EXPECT_EQ(Intervals(graph, {.ranks = 3, .slowdowns = {2, 2, 2}}), "0-20 20-25 = 25")
      << "ranks that are alike are simulated as one";
}

TEST(Simulate, GivesCollectivesTheSameOrderOnRanksThatDiffer) {
  // Rank 1 has b ready before a; a comes first on ranks that are alike.
  const TaskGraph graph{
      .tasks = {{.label = "fast", .us = 1},
                {.label = "slow", .us = 2, .lane = 1},
                {.label = "a", .kind = kCollective, .us = 4, .lane = 2, .after = {0}},
                {.label = "b", .kind = kCollective, .us = 4, .lane = 2, .after = {1}}},
      .lanes = {{"one"}, {"two"}, {"link"}}};
  const SimulationOptions options{.ranks = 8, .jitter = 2, .seed = 3};
  const absl::StatusOr<Timeline> timeline = Simulate(graph, options);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(timeline->Of(rank, 2).begin, timeline->Of(0, 2).begin);
    EXPECT_GE(timeline->Of(rank, 3).begin, timeline->Of(rank, 2).end);
  }
}

TEST(Simulate, DrawsTimesBySeed) {
  const TaskGraph graph{.tasks = {{.us = 10}}, .lanes = {{"compute"}}};
  const auto us = [&](uint64_t seed) {
    return Simulate(graph, {.ranks = 2, .jitter = 0.1, .seed = seed})->us;
  };
  EXPECT_EQ(us(1), us(1));
  EXPECT_NE(us(1), us(2));
}

TEST(Simulate, NamesTasksThatWaitForEachOther) {
  const TaskGraph graph{.tasks = {{.label = "a", .us = 1, .after = {1}}, {.label = "b", .us = 2}},
                        .lanes = {{"compute", {0, 1}}}};
  EXPECT_EQ(Intervals(graph),
            "simulate: 2 of 2 tasks wait for each other; next are \"a\" on lane compute; want "
            "orders of lanes and dependencies without cycles");
}

TEST(Simulate, RefusesWhatIsNoTaskGraph) {
  const auto refusal = [](TaskGraph graph) {
    return std::string(Simulate(graph).status().message());
  };
  EXPECT_EQ(refusal({.tasks = {{.label = "a", .us = 1, .lane = 1}}, .lanes = {{"x"}}}),
            "simulate: task 0 \"a\": want one of 1 lanes, have lane 1");
  EXPECT_EQ(refusal({.tasks = {{.label = "a", .us = -1}}, .lanes = {{"x"}}}),
            "simulate: task 0 \"a\": want a time of 0 us or more, have -1");
  EXPECT_EQ(refusal({.tasks = {{.label = "a", .after = {3}}}, .lanes = {{"x"}}}),
            "simulate: task 0 \"a\": want it after one of 1 tasks, have 3");
  EXPECT_EQ(refusal({.tasks = {{.label = "a"}, {.label = "b"}}, .lanes = {{"x", {0, 0}}}}),
            "simulate: lane x: want each of its tasks once in its order, have 0");
  EXPECT_EQ(Simulate({}, {.contention = {.computation = 0.5}}).status().message(),
            "simulate: want contention of 1 or more, have 0.5");
  EXPECT_EQ(Simulate({}, {.ranks = 2, .slowdowns = {1}}).status().message(),
            "simulate: want a slowdown per rank, of 2, have 1");
}

/// The same without contention, a tenth of a microsecond at a time. Ends in tenths by rank and
/// task; empty where tasks wait for each other.
std::vector<int> EndsByTicks(const TaskGraph& g, const std::vector<int>& slowdowns) {
  const int ranks = static_cast<int>(slowdowns.size()), n = g.size();
  std::vector<int> end(ranks * n, -1), begun(ranks * n, -1);  // begun: arrived at collectives
  std::vector<std::vector<int>> free_at(ranks, std::vector<int>(g.lanes.size(), 0));
  std::vector<std::vector<size_t>> next(ranks, std::vector<size_t>(g.lanes.size(), 0));
  const auto is_ready = [&](int r, int t, int now) {
    return begun[r * n + t] < 0 &&
           absl::c_all_of(
               g.tasks[t].after,
               [&](int before) { return end[r * n + before] >= 0 && end[r * n + before] <= now; });
  };
  for (int now = 0; now < 100 * (n + 1) * 3; ++now) {
    for (bool again = true; again;) {           // tasks of no time end at once
      std::vector<std::pair<int, int>> chosen;  // rank, task
      for (int r = 0; r < ranks; ++r) {
        for (int lane = 0; lane < static_cast<int>(g.lanes.size()); ++lane) {
          if (free_at[r][lane] > now) continue;
          int best = -1;
          const std::vector<int>& order = g.lanes[lane].order;
          if (!order.empty()) {
            if (next[r][lane] < order.size() && is_ready(r, order[next[r][lane]], now))
              best = order[next[r][lane]++];
          } else {
            for (int t = 0; t < n; ++t) {
              if (g.tasks[t].lane != lane || !is_ready(r, t, now)) continue;
              if (best < 0 || g.tasks[t].priority > g.tasks[best].priority) best = t;
            }
          }
          if (best >= 0) chosen.emplace_back(r, best);
        }
      }
      again = !chosen.empty();
      for (const auto& [r, t] : chosen) {
        begun[r * n + t] = now;
        const int lane = g.tasks[t].lane, ticks = static_cast<int>(std::lround(g.tasks[t].us * 10));
        free_at[r][lane] = 1 << 30;
        if (g.tasks[t].kind == kComputation) {
          free_at[r][lane] = end[r * n + t] = now + ticks * slowdowns[r];
          continue;
        }
        bool all = true;
        for (int other = 0; other < ranks; ++other) all &= begun[other * n + t] >= 0;
        for (int other = 0; other < ranks && all; ++other)
          free_at[other][lane] = end[other * n + t] = now + ticks;
      }
    }
  }
  return absl::c_linear_search(end, -1) ? std::vector<int>{} : end;
}

TEST(Simulate, AgreesWithAClockThatTicks) {
  const uint64_t seed = FreshTaskSeed();
  std::mt19937_64 random(seed);
  int stuck = 0;
  for (int i = 0; i < 400; ++i) {
    const TaskGraph graph = RandomTasks(random, {.tasks = 1 + static_cast<int>(random() % 9),
                                                 .lanes = 1 + static_cast<int>(random() % 3),
                                                 .dependencies = static_cast<int>(random() % 8),
                                                 .orders = i % 2 == 0});
    // Ranks that differ want orders.
    const std::vector<int> slowdowns = i % 4 == 0 ? std::vector<int>{1, 3} : std::vector<int>{1};
    const std::vector<int> ticks = EndsByTicks(graph, slowdowns);
    const absl::StatusOr<Timeline> timeline =
        Simulate(graph, {.ranks = static_cast<int>(slowdowns.size()),
                         .slowdowns = {slowdowns.begin(), slowdowns.end()}});
    ASSERT_EQ(timeline.ok(), !ticks.empty()) << "COCONET_SEED=" << seed << " graph " << i;
    stuck += ticks.empty();
    for (size_t t = 0; t < ticks.size(); ++t)
      ASSERT_NEAR(timeline->tasks[t].end, ticks[t] / 10.0, 1e-6)
          << "COCONET_SEED=" << seed << " graph " << i << " task " << t;
  }
  EXPECT_GT(stuck, 0);
  EXPECT_LT(stuck, 200);
}

/// The time that a task would have taken alone, by what ran beside it.
double AloneUs(const TaskGraph& g, const Timeline& timeline, const Contention& contention, int t) {
  const Timeline::Interval& own = timeline.tasks[t];
  std::vector<double> cuts = {own.begin, own.end};
  for (const Timeline::Interval& i : timeline.tasks) {
    for (double time : {i.begin, i.end}) {
      if (time > own.begin && time < own.end) cuts.push_back(time);
    }
  }
  absl::c_sort(cuts);
  double us = 0;
  for (size_t i = 1; i < cuts.size(); ++i) {
    const double middle = (cuts[i - 1] + cuts[i]) / 2;
    bool beside = false;
    for (int other = 0; other < g.size(); ++other) {
      beside |= g.tasks[other].kind != g.tasks[t].kind && timeline.tasks[other].begin < middle &&
                timeline.tasks[other].end > middle;
    }
    const double slowdown = !beside                          ? 1
                            : g.tasks[t].kind == kCollective ? contention.collective
                                                             : contention.computation;
    us += (cuts[i] - cuts[i - 1]) / slowdown;
  }
  return us;
}

TEST(Simulate, GivesEachTaskItsTimeUnderContention) {
  const uint64_t seed = FreshTaskSeed();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100; ++i) {
    const TaskGraph graph = RandomTasks(random, {.tasks = 12, .lanes = 3, .dependencies = 12});
    const Contention contention{1 + (random() % 100) / 50.0, 1 + (random() % 100) / 50.0};
    const absl::StatusOr<Timeline> timeline = Simulate(graph, {.contention = contention});
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    for (int t = 0; t < graph.size(); ++t) {
      EXPECT_NEAR(AloneUs(graph, *timeline, contention, t), graph.tasks[t].us, 1e-6)
          << "COCONET_SEED=" << seed << " graph " << i << " task " << t;
      for (int before : graph.tasks[t].after)
        EXPECT_LE(timeline->tasks[before].end, timeline->tasks[t].begin + 1e-9);
    }
  }
}

}  // namespace
}  // namespace coconet
