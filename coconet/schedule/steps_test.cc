#include "coconet/schedule/steps.h"

#include "coconet/testing/transformed.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

Graph GraphOf(const char* program) { return ScheduleOf(program).graph; }

using Groups = std::vector<std::vector<NodeId>>;
using After = std::vector<std::vector<int>>;

/// %2 = 2, %3 = mul(2, lr), %4 = mul(g, %3), %5 = all_reduce, %6 = output.
constexpr char kScalars[] = R"(input g : f32[8] local
input lr : f32[] replicated
output y = all_reduce(sum, g * (2 * lr))
)";

TEST(Steps, ScalarsAreInNone) {
  const Steps steps = FindSteps(GraphOf(kScalars), {});
  EXPECT_EQ(steps.nodes, (Groups{{4}, {5}, {6}}));
  EXPECT_EQ(steps.of, (std::vector<int>{-1, -1, -1, -1, 0, 1, 2}));
  EXPECT_EQ(steps.after, (After{{}, {0}, {1}}));
}

TEST(Steps, AScalarThatACollectiveTakesIsOne) {
  const Graph g = GraphOf("input l : f32[] local\noutput y = all_reduce(sum, 0.5 * l) * 2\n");
  // %2 = mul, %3 = all_reduce; the product with 2 is recomputed by the output.
  const Steps steps = FindSteps(g, {});
  EXPECT_EQ(steps.nodes, (Groups{{2}, {3}, {6}}));
  EXPECT_EQ(steps.after, (After{{}, {0}, {1}}));
}

TEST(Steps, KernelsAreOneEach) {
  const Steps steps = FindSteps(GraphOf(kScalars), {{5, 6}});
  EXPECT_EQ(steps.nodes, (Groups{{4}, {5, 6}}));
  EXPECT_EQ(steps.after, (After{{}, {0}}));
}

TEST(Steps, AUseOfAnUpdateWaitsForTheValueOnly) {
  const Graph g =
      GraphOf("state p : f32[8] replicated\nnew = update(p, 2 * p)\noutput y = new - p\n");
  // %2 = mul, %3 = update, %4 = sub, %5 = output: the difference reads the old p, so it comes
  // before the update.
  const Steps steps = FindSteps(g, {});
  EXPECT_EQ(steps.nodes, (Groups{{2}, {3}, {4}, {5}}));
  EXPECT_EQ(steps.after, (After{{}, {0, 2}, {0}, {2}}));
  EXPECT_EQ(InOrder(steps, {0, 0, 0, 0}), (std::vector<int>{0, 2, 1, 3}));
}

TEST(Steps, AnOldScalarStateIsReadWhereverItsComputationsAre) {
  const Graph g = GraphOf(
      "state n : f32[] replicated\ninput x : f32[8] replicated\nupdate(n, n + 1)\noutput y = x * "
      "(n + 1)\n");
  // %3 = add is recomputed by the update and by the product.
  const Steps steps = FindSteps(g, {});
  EXPECT_EQ(steps.nodes, (Groups{{4}, {5}, {6}}));
  EXPECT_EQ(steps.after, (After{{1}, {}, {1}}));
}

TEST(Steps, AScalarStateThatTakesAnotherIsComputedBeforeEitherIsStored) {
  const Graph g = GraphOf(R"(state a : f32[] replicated
state b : f32[] replicated
update(a, a + b)
update(b, a - b)
)");
  // %2 = add, %3 = update, %4 = sub, %5 = update.
  const Steps steps = FindSteps(g, {});
  EXPECT_EQ(steps.nodes, (Groups{{2}, {3}, {4}, {5}}));
  EXPECT_EQ(steps.after, (After{{}, {0, 2}, {}, {0, 2}}));
}

TEST(Steps, OrderStopsAtACycle) {
  Steps steps;
  steps.nodes = {{0}, {1}, {2}, {3}};
  steps.after = {{}, {0, 2}, {1}, {2}};
  EXPECT_EQ(InOrder(steps, {0, 0, 0, 0}), std::vector<int>{0});
  EXPECT_EQ(StepsWithin(steps, 1), std::vector<int>{2});
  EXPECT_EQ(StepsWithin(steps, 0), std::vector<int>{});
  EXPECT_EQ(StepsWithin(steps, 3), std::vector<int>{});
}

TEST(Stages, CountCollectivesAndPullPreparationBehindThem) {
  const Graph g = GraphOf(
      "input g : f32[8] local\nstate m : f32[8]\nupdate(m, 0.5 * m + all_reduce(sum, g * g))\n");
  // %2 = 0.5, %3 = mul(0.5, m), %4 = mul(g, g), %5 = all_reduce, %6 = add, %7 = update.
  EXPECT_EQ(Stages(g), (std::vector<int>{0, 1, 1, 1, 0, 1, 1, 1}));
}

}  // namespace
}  // namespace coconet
