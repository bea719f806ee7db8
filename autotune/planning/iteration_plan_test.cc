#include "autotune/planning/iteration_plan.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "autotune/cost/nominal_cost_model.h"
#include "autotune/planning/plan_tasks.h"
#include "autotune/simulation/bounds.h"
#include "autotune/simulation/testing/random_tasks.h"
#include "coconet/language/text.h"
#include "coconet/testing/random_program.h"
#include "coconet/workloads/training_steps.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// A plan of a program, with what it refers to.
struct Planned {
  explicit Planned(const Graph& program)
      : graph(*PlanGraph::Of(*InitialSchedule(program), Target(2, 2), rates)), plan(graph) {}

  NominalCostModel rates{NominalRates()};
  PlanGraph graph;
  IterationPlan plan;
};

Graph Program(absl::string_view statements) {
  return *Parse(absl::StrCat("coconet 1\n", statements));
}

/// Two gradients, each with an update.
Graph TwoGradients() {
  return Program(R"(input x : f32[64] local
state a : f32[64]
state b : f32[64]
ga = exp(x)
gb = tanh(ga)
update(a, a - all_reduce(sum, ga))
update(b, b - all_reduce(sum, gb))
)");
}

int ItemOf(const PlanGraph& graph, absl::string_view op, int which = 0) {
  for (int item = 0; item < graph.size(); ++item) {
    if (OpText(graph.schedule().graph().nodes[graph[item].nodes[0]].op) == op && which-- == 0)
      return item;
  }
  ADD_FAILURE() << "no " << op;
  return 0;
}

/// The simulated time by the room that simulates any tasks.
double SimulatedUs(const IterationPlan& plan) {
  const absl::StatusOr<Timeline> timeline =
      Simulate(TasksOf(plan), {.contention = plan.graph().contention()});
  return timeline.ok() ? timeline->us : std::numeric_limits<double>::infinity();
}

/// Groups, lanes and orders.
std::string Text(const IterationPlan& plan) {
  std::string text;
  for (int lane : {0, 1}) {
    absl::StrAppend(&text, "lane ", lane, ":");
    for (int group : plan.order(lane)) {
      std::vector<int> items = plan.group(group).items;
      std::sort(items.begin(), items.end());
      absl::StrAppend(&text, " {");
      for (int item : items) absl::StrAppend(&text, item, ",");
      absl::StrAppend(&text, "}");
      EXPECT_EQ(plan.order(lane)[plan.group(group).position], group);
      EXPECT_EQ(plan.group(group).lane, lane);
      for (int item : items) EXPECT_EQ(plan.group_of(item), group);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

TEST(IterationPlan, FusesAKernelWithOneThatItTakesFrom) {
  Planned p(TwoGradients());
  const int exp = ItemOf(p.graph, "exp"), tanh = ItemOf(p.graph, "tanh");
  const double before = p.plan.Us();
  ASSERT_TRUE(p.plan.Merge(p.plan.group_of(exp), p.plan.group_of(tanh)));
  EXPECT_EQ(p.plan.group_of(exp), p.plan.group_of(tanh));
  EXPECT_LT(p.plan.Us(), before);
  p.plan.Accept();
  EXPECT_NEAR(p.plan.Us(), SimulatedUs(p.plan), 1e-6);
}

TEST(IterationPlan, RefusesAKernelAroundACollective) {
  Planned p(TwoGradients());
  const int exp = ItemOf(p.graph, "exp"), sub = ItemOf(p.graph, "sub");
  const std::string before = Text(p.plan);
  EXPECT_FALSE(p.plan.Merge(p.plan.group_of(exp), p.plan.group_of(sub)));
  EXPECT_EQ(Text(p.plan), before);
}

TEST(IterationPlan, MakesCollectivesOneBucket) {
  Planned p(TwoGradients());
  const int first = ItemOf(p.graph, "all_reduce"), second = ItemOf(p.graph, "all_reduce", 1);
  ASSERT_TRUE(p.plan.Merge(p.plan.group_of(first), p.plan.group_of(second)));
  EXPECT_EQ(p.plan.order(1).size(), 1u);
  const IterationPlan::Group& bucket = p.plan.group(p.plan.group_of(first));
  EXPECT_DOUBLE_EQ(bucket.us, 60 + 2 * 2 + 2 * 64 * 4 / 1e3);
  p.plan.Accept();
  ASSERT_TRUE(p.plan.Detach(p.plan.group_of(first), {first}));
  EXPECT_EQ(p.plan.order(1).size(), 2u);
}

TEST(IterationPlan, DoesNotOverlapACollectiveOfTheLaneThatComputes) {
  Planned p(TwoGradients());
  const int first = ItemOf(p.graph, "all_reduce");
  ASSERT_TRUE(p.plan.SetLane(p.plan.group_of(first), 0));
  EXPECT_EQ(p.plan.order(1).size(), 1u);
  EXPECT_NEAR(p.plan.Us(), SimulatedUs(p.plan), 1e-6);
  p.plan.Undo();
  EXPECT_EQ(p.plan.order(1).size(), 2u);
}

TEST(IterationPlan, IsInfiniteWhereLanesWaitForEachOther) {
  // The second collective takes what is computed from the first.
  Planned p(Program(R"(input x : f32[64] local
input y : f32[64] local
state a : f32[64]
r = all_reduce(sum, exp(x))
update(a, a + all_reduce(sum, r * y))
)"));
  const std::vector<int> order = p.plan.order(1);
  ASSERT_EQ(order.size(), 2u);
  p.plan.Reorder(1, {order[1], order[0]});
  EXPECT_FALSE(std::isfinite(p.plan.Us()));
  p.plan.Undo();
  EXPECT_NEAR(p.plan.Accept(), SimulatedUs(p.plan), 1e-6);
}

/// One random edit.
void Edit(std::mt19937_64& random, IterationPlan& plan) {
  const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  const int lane = plan.order(1).empty() ? 0 : below(2);
  const std::vector<int>& order = plan.order(lane);
  if (order.empty()) return;
  const int group = order[below(order.size())];
  const std::vector<int> after = plan.After(group);
  switch (below(5)) {
    case 0:
      if (!after.empty()) plan.Merge(after[below(after.size())], group);
      break;
    case 1:
      plan.Merge(order[below(order.size())], group);
      break;
    case 2: {
      std::vector<int> items = plan.group(group).items;
      std::shuffle(items.begin(), items.end(), random);
      items.resize(below(items.size()));
      plan.Detach(group, items);
      break;
    }
    case 3:
      plan.Move(group, below(order.size()));
      break;
    case 4:
      plan.SetLane(group, below(2));
      break;
  }
}

/// Edits, some taken back, agree with the simulation of any tasks; and bounds lie below.
void EditAtRandom(std::mt19937_64& random, const Graph& program, int edits,
                  const std::string& where) {
  Planned p(program);
  for (int i = 0; i < edits; ++i) {
    const std::string before = Text(p.plan);
    for (uint64_t k = random() % 3; k < 3; ++k) Edit(random, p.plan);
    const double us = p.plan.Us(), wanted = SimulatedUs(p.plan);
    if (std::isfinite(wanted)) {
      ASSERT_NEAR(us, wanted, 1e-6) << where << " edit " << i;
      ASSERT_LE(BoundOf(p.plan), us + 1e-6) << where << " edit " << i;
      ASSERT_LE(BoundsOf(TasksOf(p.plan), p.graph.contention())->dependencies_us, us + 1e-6)
          << where << " edit " << i;
    } else {
      ASSERT_FALSE(std::isfinite(us)) << where << " edit " << i;
    }
    if (random() % 2 == 0 && std::isfinite(us)) {
      ASSERT_NEAR(p.plan.Accept(), wanted, 1e-6) << where << " edit " << i;
    } else {
      p.plan.Undo();
      ASSERT_EQ(Text(p.plan), before) << where << " edit " << i;
      ASSERT_NEAR(p.plan.Us(), SimulatedUs(p.plan), 1e-6) << where << " edit " << i;
    }
  }
}

TEST(IterationPlan, AgreesWithTheSimulatorAfterRandomEdits) {
  const uint64_t seed = FreshTaskSeed();
  std::mt19937_64 random(seed);
  EditAtRandom(random, *GptStep({.layers = 2, .width = 16, .heads = 2}), 300,
               absl::StrCat("gpt_step COCONET_SEED=", seed));
  for (int i = 0; i < 20; ++i) {
    const Graph program = RandomProgram(
        random(), {.kind = ProgramKind::kStep, .operations = 30, .max_communications = 6});
    absl::StatusOr<Graph> bound = BindSizes(program, {});
    if (!bound.ok()) continue;
    EditAtRandom(random, *bound, 40, absl::StrCat("program ", i, " COCONET_SEED=", seed));
  }
}

}  // namespace
}  // namespace coconet
