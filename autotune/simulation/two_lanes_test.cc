#include "autotune/simulation/two_lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "autotune/simulation/testing/random_tasks.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using Step = TwoLanes::Step;

/// The graph of the steps: each comes after the other lane's step that it needs.
TaskGraph GraphOf(const TwoLanes::Lanes& lanes) {
  TaskGraph graph{.lanes = {{"zero"}, {"one"}}};
  const int first[] = {0, static_cast<int>(lanes[0].size())};
  for (int lane : {0, 1}) {
    for (const Step& step : lanes[lane]) {
      graph.lanes[lane].order.push_back(graph.size());
      graph.tasks.push_back(
          {.kind = step.is_collective ? TaskKind::kCollective : TaskKind::kComputation,
           .us = step.us,
           .lane = lane});
      if (step.needs > 0) graph.tasks.back().after = {first[1 - lane] + step.needs - 1};
    }
  }
  return graph;
}

TwoLanes::Lanes RandomLanes(std::mt19937_64& random, int steps) {
  TwoLanes::Lanes lanes;
  for (int lane : {0, 1}) {
    for (int i = 0; i < steps; ++i) {
      // Mostly of what comes earlier on the other lane, so that some wait and few wait for ever.
      const int needs = random() % 3 == 0 ? std::max(0, i - static_cast<int>(random() % 4)) : 0;
      lanes[lane].push_back({.us = static_cast<double>(random() % 50) / 10,
                             .is_collective = random() % 5 < (lane == 1 ? 4 : 1),
                             .needs = needs});
    }
  }
  return lanes;
}

double UsOf(const TaskGraph& graph, const Contention& contention) {
  const absl::StatusOr<Timeline> timeline = Simulate(graph, {.contention = contention});
  return timeline.ok() ? timeline->us : std::numeric_limits<double>::infinity();
}

TEST(TwoLanes, AgreesWithSimulate) {
  const uint64_t seed = FreshTaskSeed();
  std::mt19937_64 random(seed);
  int ended = 0;
  for (int i = 0; i < 300; ++i) {
    const Contention contention{1 + (random() % 10) / 10.0, 1 + (random() % 10) / 10.0, 2};
    const TwoLanes::Lanes lanes = RandomLanes(random, 1 + static_cast<int>(random() % 20));
    TwoLanes two_lanes(contention);
    const double us = two_lanes.Run(lanes);
    const absl::StatusOr<Timeline> timeline = Simulate(GraphOf(lanes), {.contention = contention});
    ASSERT_EQ(std::isfinite(us), timeline.ok()) << "COCONET_SEED=" << seed << " lanes " << i;
    if (!timeline.ok()) continue;
    ++ended;
    EXPECT_NEAR(us, timeline->us, 1e-6) << "COCONET_SEED=" << seed << " lanes " << i;
    for (int lane : {0, 1}) {
      for (size_t step = 0; step < lanes[lane].size(); ++step) {
        const Timeline::Interval& wanted = timeline->tasks[lane * lanes[0].size() + step];
        EXPECT_NEAR(two_lanes.Of(lane, static_cast<int>(step)).begin, wanted.begin, 1e-6);
        EXPECT_NEAR(two_lanes.Of(lane, static_cast<int>(step)).end, wanted.end, 1e-6);
      }
    }
  }
  EXPECT_GT(ended, 100) << "COCONET_SEED=" << seed;
}

/// Replaces a few steps of each lane by others, and points what needed them or later ones to where
/// these are now.
TwoLanes::Change ChangeSome(std::mt19937_64& random, TwoLanes::Lanes& lanes) {
  TwoLanes::Change change;
  const TwoLanes::Lanes fresh = RandomLanes(random, 3);
  for (int lane : {0, 1}) {
    const int size = static_cast<int>(lanes[lane].size());
    const int first = static_cast<int>(random() % (size + 1));
    const int removed = std::min<int>(size - first, static_cast<int>(random() % 3));
    const int added =
        removed > 0 ? 1 + static_cast<int>(random() % 2) : static_cast<int>(random() % 3);
    change.first[lane] = first;
    change.kept[lane] = size - first - removed;
    std::vector<Step>& steps = lanes[lane];
    steps.erase(steps.begin() + first, steps.begin() + first + removed);
    steps.insert(steps.begin() + first, fresh[lane].begin(), fresh[lane].begin() + added);
    for (Step& other : lanes[1 - lane]) {
      if (other.needs > first + removed) {
        other.needs += added - removed;
      } else if (other.needs > first) {
        other.needs = first + 1;
      }
    }
  }
  return change;
}

TEST(TwoLanes, ResumesWhereLanesDiffer) {
  const uint64_t seed = FreshTaskSeed();
  std::mt19937_64 random(seed);
  int ended = 0;
  for (int i = 0; i < 200; ++i) {
    const Contention contention{1.2, 1.1};
    TwoLanes::Lanes lanes = RandomLanes(random, 30);
    TwoLanes two_lanes(contention);
    if (!std::isfinite(two_lanes.Run(lanes))) continue;
    for (int k = 0; k < 20; ++k) {
      TwoLanes::Lanes changed = lanes;
      const TwoLanes::Change change = ChangeSome(random, changed);
      const double wanted = UsOf(GraphOf(changed), contention);
      const auto where = [&] {
        return absl::StrCat("COCONET_SEED=", seed, " lanes ", i, " change ", k);
      };
      const double tried = two_lanes.Try(changed, change);
      if (!std::isfinite(wanted)) {
        EXPECT_FALSE(std::isfinite(tried)) << where();
        continue;
      }
      ++ended;
      EXPECT_NEAR(tried, wanted, 1e-6) << where();
      if (random() % 2 == 0) continue;
      EXPECT_NEAR(two_lanes.Run(changed, change), wanted, 1e-6) << where();
      lanes = changed;
    }
  }
  EXPECT_GT(ended, 300) << "COCONET_SEED=" << seed;
}

}  // namespace
}  // namespace coconet
