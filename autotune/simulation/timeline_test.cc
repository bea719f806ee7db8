#include "autotune/simulation/timeline.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "autotune/simulation/testing/random_tasks.h"
#include "coconet/base/table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr TaskKind kCollective = TaskKind::kCollective;

/// Two gradients; the second's collective is exposed but for 2 us.
TaskGraph TwoGradients() {
  return {.tasks = {{.label = "g0", .us = 4},
                    {.label = "g1", .us = 6, .after = {0}},
                    {.label = "AR0", .kind = kCollective, .us = 3, .lane = 1, .after = {0}},
                    {.label = "AR1", .kind = kCollective, .us = 5, .lane = 1, .after = {1}},
                    {.label = "u0", .us = 2, .after = {2}},
                    {.label = "u1", .us = 1, .after = {3}}},
          .lanes = {{"compute"}, {"link"}},
          .values = {{.bytes = 100, .made_by = 0, .taken_by = {1, 2}},
                     {.bytes = 10, .made_by = 1, .taken_by = {3}},
                     {.bytes = 1, .made_by = 2, .taken_by = {4}, .stays = true},
                     {.bytes = 1000, .stays = true}}};
}

std::string PathText(const TaskGraph& graph, const Timeline& timeline) {
  return absl::StrJoin(CriticalPath(graph, timeline), " ",
                       [&](std::string* out, const CriticalTask& t) {
                         absl::StrAppend(out, t.rank, ":", graph.tasks[t.task].label);
                       });
}

/// A table with a row per task in the order of their begins: rank, lane, begin, end, "*" on the
/// critical path, label; and below it makespan, exposed communication and peak memory.
std::string TimelineText(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<bool> is_critical(timeline.tasks.size());
  for (const CriticalTask& task : CriticalPath(graph, timeline))
    is_critical[task.rank * graph.size() + task.task] = true;
  std::vector<TableCells> rows;
  for (int index : timeline.order) {
    const Timeline::Interval& interval = timeline.tasks[index];
    const Task& task = graph.tasks[index % graph.size()];
    rows.push_back({absl::StrCat(index / graph.size()), graph.lanes[task.lane].name,
                    absl::StrFormat("%.1f", interval.begin), absl::StrFormat("%.1f", interval.end),
                    is_critical[index] ? "*" : "", task.label});
  }
  return absl::StrCat(
      TextTable({{"rank", true}, {"lane"}, {"begin", true}, {"end", true}, {"critical"}, {"task"}},
                rows),
      absl::StrFormat("makespan %.1f us, exposed communication %.1f us, peak %d bytes\n",
                      timeline.us, ExposedCommunication(graph, timeline),
                      PeakBytes(graph, timeline)));
}

TEST(Timeline, FindsTheCriticalPath) {
  const TaskGraph graph = TwoGradients();
  EXPECT_EQ(PathText(graph, *Simulate(graph)), "0:g0 0:g1 0:AR1 0:u1");
}

TEST(Timeline, FollowsTheLastRankThatArrives) {
  const TaskGraph graph = TwoGradients();
  const absl::StatusOr<Timeline> timeline = Simulate(graph, {.ranks = 2, .slowdowns = {1, 2}});
  EXPECT_EQ(PathText(graph, *timeline), "1:g0 1:g1 1:AR1 1:u1");
}

TEST(Timeline, AddsUpExposedCommunication) {
  const TaskGraph graph = TwoGradients();
  // g1 ends at 10, AR1 runs from 10 to 15, u0 from 10 to 12.
  EXPECT_EQ(ExposedCommunication(graph, *Simulate(graph)), 3);
}

TEST(Timeline, FindsThePeakOfLiveValues) {
  const TaskGraph graph = TwoGradients();
  // From 4 on, g0's gradient (100), g1's (10) and AR0's (1) live; 1000 are there before all tasks.
  EXPECT_EQ(PeakBytes(graph, *Simulate(graph)), 1000 + 111);
}

TEST(Timeline, PrintsARowPerTask) {
  const TaskGraph graph = TwoGradients();
  EXPECT_EQ(TimelineText(graph, *Simulate(graph)),
            R"(rank  lane     begin   end  critical  task
   0  compute    0.0   4.0  *         g0
   0  compute    4.0  10.0  *         g1
   0  link       4.0   7.0            AR0
   0  compute   10.0  12.0            u0
   0  link      10.0  15.0  *         AR1
   0  compute   15.0  16.0  *         u1
makespan 16.0 us, exposed communication 3.0 us, peak 1111 bytes
)");
}

TEST(Timeline, IsAChromeTrace) {
  const TaskGraph graph{.tasks = {{.label = "a", .us = 2}}, .lanes = {{"compute"}}};
  EXPECT_EQ(ChromeTrace(graph, *Simulate(graph)).text,
            R"({"traceEvents": [
{"name": "thread_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "compute"}},
{"name": "a", "cat": "computation", "ph": "X", "ts": 0, "dur": 2, "pid": 0, "tid": 0}
]})");
}

TEST(Timeline, HasACriticalPathWithoutGaps) {
  const uint64_t seed = FreshTaskSeed();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100; ++i) {
    const TaskGraph graph = RandomTasks(random, {.tasks = 30, .lanes = 3, .dependencies = 40});
    const absl::StatusOr<Timeline> timeline = Simulate(
        graph, {.contention = {1.3, 1.2}, .ranks = i % 2 + 1, .jitter = 0.3, .seed = random()});
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    double now = 0;
    for (const CriticalTask& task : CriticalPath(graph, *timeline)) {
      const Timeline::Interval& interval = timeline->Of(task.rank, task.task);
      EXPECT_NEAR(interval.begin, now, 1e-9) << "COCONET_SEED=" << seed << " graph " << i;
      now = interval.end;
    }
    EXPECT_EQ(now, timeline->us) << "COCONET_SEED=" << seed << " graph " << i;
  }
}

}  // namespace
}  // namespace coconet
