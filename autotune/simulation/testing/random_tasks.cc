#include "autotune/simulation/testing/random_tasks.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/env.h"

namespace coconet {

uint64_t FreshTaskSeed() { return GetEnv().seed.value_or(std::random_device()()); }

TaskGraph RandomTasks(std::mt19937_64& random, const RandomTaskOptions& options) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  TaskGraph graph;
  for (int lane = 0; lane < options.lanes; ++lane)
    graph.lanes.push_back({absl::StrCat("lane", lane)});
  for (int t = 0; t < options.tasks; ++t) {
    const int lane = below(options.lanes);
    const bool communicates = lane + 1 == options.lanes && options.lanes > 1;
    graph.tasks.push_back({.label = absl::StrCat("t", t),
                           .kind = communicates ? TaskKind::kCollective : TaskKind::kComputation,
                           .us = below(4) == 0 ? below(3) : below(90) / 10.0,
                           .lane = lane,
                           .priority = static_cast<double>(below(3))});
  }
  // Dependencies follow a shuffled order, so that numbers are no topological order.
  std::vector<int> order(options.tasks);
  for (int t = 0; t < options.tasks; ++t) order[t] = t;
  std::shuffle(order.begin(), order.end(), random);
  for (int i = 0; i < options.dependencies && options.tasks > 1; ++i) {
    const int later = 1 + below(options.tasks - 1);
    std::vector<int>& after = graph.tasks[order[later]].after;
    const int earlier = order[below(later)];
    if (!absl::c_linear_search(after, earlier)) after.push_back(earlier);
  }
  if (options.orders) {
    std::shuffle(order.begin(), order.end(), random);
    for (int t : order) graph.lanes[graph.tasks[t].lane].order.push_back(t);
  }
  return graph;
}

}  // namespace coconet
