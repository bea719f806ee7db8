#include "autotune/planning/plan_graph.h"

#include <random>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "autotune/cost/nominal_cost_model.h"
#include "autotune/simulation/testing/random_tasks.h"
#include "coconet/schedule/derivation/fuse_moves.h"
#include "coconet/workloads/training_steps.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

Schedule Gpt(int64_t layers) {
  return *InitialSchedule(*GptStep({.layers = layers, .width = 16, .heads = 2}));
}

TEST(PlanGraph, HasAnItemPerLaunch) {
  const NominalCostModel rates({});
  const Schedule schedule = Gpt(1);
  const PlanGraph graph = *PlanGraph::Of(schedule, Target(2, 2), rates);
  ASSERT_EQ(graph.size(), schedule.launches().size());
  for (int item = 0; item < graph.size(); ++item) {
    EXPECT_EQ(graph[item].nodes, schedule.launches()[item].nodes);
    EXPECT_EQ(graph[item].after, schedule.launches()[item].after);
    const NodeId id = graph[item].nodes[0];
    EXPECT_EQ(graph.IsCollective(item), Communicates(schedule.graph(), id));
    const bool is_product = As<MatMul>(schedule.graph(), id) != nullptr;
    EXPECT_TRUE(!is_product || !graph.Joins(item));
    EXPECT_DOUBLE_EQ(graph.UsOf({&item, 1}),
                     rates.Us(WorkOf(schedule.program(), graph[item].nodes, Target(2, 2))));
  }
}

TEST(PlanGraph, RefusesSchedulesWithKernels) {
  const NominalCostModel rates({});
  const Schedule plain = Gpt(1);
  const std::vector<Fuse> fuses = FuseMoves(plain, FuseKind::kGroup);
  ASSERT_FALSE(fuses.empty());
  const absl::Status refusal = PlanGraph::Of(*Apply(plain, fuses[0]), Target(2), rates).status();
  EXPECT_EQ(refusal.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refusal.message()),
              testing::HasSubstr("want a schedule without kernels and overlaps, have 1 and 0"));
}

TEST(PlanGraph, AgreesWithApplyAboutFusions) {
  // A kernel can contain two items, or a group that Derive would fuse without one of its items, if
  // Apply fuses them, or if only what lies between them is missing.
  const uint64_t seed = FreshTaskSeed();
  std::mt19937_64 random(seed);
  const NominalCostModel rates({});
  const Schedule schedule = Gpt(2);
  const PlanGraph graph = *PlanGraph::Of(schedule, Target(2, 2), rates);
  const std::vector<std::vector<NodeId>> groups = ComputeGroups(schedule);
  int fused = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::set<int> items;
    if (i % 2 == 0) {
      const int item = static_cast<int>(random() % graph.size());
      items.insert(item);
      for (int other : graph.before(item)) items.insert(other);
    } else {
      for (NodeId id : groups[random() % groups.size()]) {
        if (random() % 8 != 0 && graph.item_of(id) >= 0) items.insert(graph.item_of(id));
      }
    }
    if (items.size() < 2) continue;
    const std::vector<int> list(items.begin(), items.end());
    const std::vector<NodeId> nodes = graph.NodesOf(list);
    const absl::Status applied = Apply(schedule, Fuse{nodes}).status();
    const bool cycle = absl::StrContains(applied.message(), "must run after some of it");
    const bool alone = absl::c_any_of(list, [&](int item) { return !graph.Joins(item); });
    ASSERT_EQ(graph.Fits(list), (applied.ok() || cycle) && !alone)
        << "COCONET_SEED=" << seed << " " << applied;
    ++(applied.ok() ? fused : refused);
  }
  EXPECT_GT(fused, 20);
  EXPECT_GT(refused, 20);
}

TEST(PlanGraph, AsksOnceAboutLayersThatAreAlike) {
  const NominalCostModel rates({});
  const auto distinct = [&](int64_t layers) {
    const PlanGraph graph = *PlanGraph::Of(Gpt(layers), Target(2, 2), rates);
    for (int item = 0; item < graph.size(); ++item) graph.UsOf({&item, 1});
    return graph.distinct_groups();
  };
  EXPECT_EQ(distinct(6), distinct(3));
}

TEST(PlanGraph, FindsItemsThatAreAlikeInTheMiddleLayers) {
  const NominalCostModel rates({});
  const PlanGraph graph = *PlanGraph::Of(Gpt(8), Target(2, 2), rates);
  std::vector<int> count;
  for (int item = 0; item < graph.size(); ++item) {
    count.resize(std::max<size_t>(count.size(), graph.alike(item) + 1));
    ++count[graph.alike(item)];
  }
  // Most items have another like them in each layer but the first and the last ones.
  int shared = 0;
  for (int item = 0; item < graph.size(); ++item) shared += count[graph.alike(item)] >= 6;
  EXPECT_GT(shared, graph.size() / 2);
}

}  // namespace
}  // namespace coconet
