#include "coconet/schedule/launches.h"

#include "coconet/testing/transformed.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

TypedGraph ProgramOf(const char* program) { return ScheduleOf(program).program(); }

using Nodes = std::vector<std::vector<NodeId>>;
using After = std::vector<std::vector<int>>;

Nodes NodesOf(const Launches& launches) {
  Nodes nodes;
  for (const Launch& launch : launches.list) nodes.push_back(launch.nodes);
  return nodes;
}

After AfterOf(const Launches& launches) {
  After after;
  for (const Launch& launch : launches.list) after.push_back(launch.after);
  return after;
}

/// %2 = 2, %3 = mul(2, lr), %4 = mul(g, %3), %5 = all_reduce, %6 = output.
constexpr char kScalars[] = R"(input g : f32[8] local
input lr : f32[] replicated
output y = all_reduce(sum, g * (2 * lr))
)";

TEST(Launches, ScalarsAreInNone) {
  const Launches launches = FindLaunches(ProgramOf(kScalars), {});
  EXPECT_EQ(NodesOf(launches), (Nodes{{4}, {5}, {6}}));
  EXPECT_EQ(launches.of, (std::vector<int>{-1, -1, -1, -1, 0, 1, 2}));
  EXPECT_EQ(AfterOf(launches), (After{{}, {0}, {1}}));
}

TEST(Launches, AScalarThatACollectiveTakesIsOne) {
  // %2 = mul, %3 = all_reduce; the product with 2 is recomputed by the output.
  const Launches launches = FindLaunches(
      ProgramOf("input l : f32[] local\noutput y = all_reduce(sum, 0.5 * l) * 2\n"), {});
  EXPECT_EQ(NodesOf(launches), (Nodes{{2}, {3}, {6}}));
  EXPECT_EQ(AfterOf(launches), (After{{}, {0}, {1}}));
}

/// h6 takes 3, 9, 21, 45, 93, then 189 operations on scalars, those taken twice counted twice.
constexpr char kLongScalars[] = R"(input x : f32[8] local
n = sum(x * x)
h1 = n * 0.25 + n * 0.5
h2 = h1 * 0.25 + h1 * 0.5
h3 = h2 * 0.25 + h2 * 0.5
h4 = h3 * 0.25 + h3 * 0.5
h5 = h4 * 0.25 + h4 * 0.5
h6 = h5 * 0.25 + h5 * 0.5
output y = x * h6
)";

TEST(Launches, LongScalarsThatSeveralTakeAreSome) {
  const TypedGraph program = ProgramOf(kLongScalars);
  const Launches launches = FindLaunches(program, {});
  int scalars = 0;
  for (const Launch& launch : launches.list) {
    const NodeId id = launch.nodes[0];
    scalars += As<Pointwise>(program.graph(), id) && program.type(id).shape.empty();
  }
  EXPECT_EQ(scalars, 1);  // h5; h6 is taken once
}

TEST(Launches, LongScalarsStayInAKernelThatBothMakesAndTakesThem) {
  const TypedGraph program = ProgramOf(kLongScalars);
  std::vector<NodeId> elements;
  for (NodeId id = 0; id < program.size(); ++id) {
    const bool is_of_elements =
        As<Pointwise>(program.graph(), id) && !program.type(id).shape.empty();
    if (is_of_elements || As<Fold>(program.graph(), id)) elements.push_back(id);
  }
  const Launches launches = FindLaunches(program, {elements});
  EXPECT_EQ(launches.size(), 2);  // the kernel and the output
}

TEST(Launches, KernelsAreOneEach) {
  const Launches launches = FindLaunches(ProgramOf(kScalars), {{5, 6}});
  EXPECT_EQ(NodesOf(launches), (Nodes{{4}, {5, 6}}));
  EXPECT_EQ(AfterOf(launches), (After{{}, {0}}));
}

TEST(Launches, AUseOfAnUpdateWaitsForTheValueOnly) {
  // %2 = mul, %3 = update, %4 = sub, %5 = output: the difference reads the old p, so it comes
  // before the update.
  const Launches launches = FindLaunches(
      ProgramOf("state p : f32[8] replicated\nnew = update(p, 2 * p)\noutput y = new - p\n"), {});
  EXPECT_EQ(NodesOf(launches), (Nodes{{2}, {3}, {4}, {5}}));
  EXPECT_EQ(AfterOf(launches), (After{{}, {0, 2}, {0}, {2}}));
  EXPECT_EQ(InOrder(launches.list), (std::vector<int>{0, 2, 1, 3}));
}

TEST(Launches, AnOldScalarStateIsReadWhereverItsComputationsAre) {
  // %3 = add is recomputed by the update and by the product.
  const Launches launches =
      FindLaunches(ProgramOf("state n : f32[] replicated\ninput x : f32[8] replicated\n"
                             "update(n, n + 1)\noutput y = x * (n + 1)\n"),
                   {});
  EXPECT_EQ(NodesOf(launches), (Nodes{{4}, {5}, {6}}));
  EXPECT_EQ(AfterOf(launches), (After{{1}, {}, {1}}));
}

TEST(Launches, AScalarStateThatTakesAnotherIsComputedBeforeEitherIsStored) {
  // %2 = add, %3 = update, %4 = sub, %5 = update.
  const Launches launches = FindLaunches(ProgramOf(R"(state a : f32[] replicated
state b : f32[] replicated
update(a, a + b)
update(b, a - b)
)"),
                                         {});
  EXPECT_EQ(NodesOf(launches), (Nodes{{2}, {3}, {4}, {5}}));
  EXPECT_EQ(AfterOf(launches), (After{{}, {0, 2}, {}, {0, 2}}));
}

TEST(Launches, OrderStopsAtACycle) {
  const std::vector<Launch> launches = {{{0}, {}}, {{1}, {0, 2}}, {{2}, {1}}, {{3}, {2}}};
  EXPECT_EQ(InOrder(launches), std::vector<int>{0});
  EXPECT_EQ(LaunchesWithin(launches, 1), std::vector<int>{2});
  EXPECT_EQ(LaunchesWithin(launches, 0), std::vector<int>{});
  EXPECT_EQ(LaunchesWithin(launches, 3), std::vector<int>{});
}

TEST(Launches, JoinedAreWhatTheirKernelsWouldBe) {
  const TypedGraph program = ProgramOf(
      "input g : f32[8] local\nstate p : f32[8] replicated\nnew = update(p, p - all_reduce(sum, "
      "g))\noutput y = 2 * new\n");
  // %2 = all_reduce, %3 = sub, %4 = update, %5 = 2, %6 = mul, %7 = output.
  const Launches joined = Joined(FindLaunches(program, {}), {0, 1, 1, 3, 3});
  const Launches found = FindLaunches(program, {{3, 4}, {6, 7}});
  EXPECT_EQ(joined.list, found.list);
  EXPECT_EQ(joined.of, found.of);
}

TEST(Traffic, CountsWhatALaunchTakesAndWhatOthersTakeOfIt) {
  const TypedGraph program = ProgramOf(kScalars);
  const auto traffic = [&](const Kernels& kernels) {
    std::vector<std::pair<int64_t, int64_t>> read_and_written;
    for (const Traffic& t : TrafficOf(program, FindLaunches(program, kernels)))
      read_and_written.emplace_back(t.read, t.written);
    return read_and_written;
  };
  using Bytes = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(traffic({}), (Bytes{{36, 32}, {32, 32}, {32, 32}}));
  EXPECT_EQ(traffic({{4, 5, 6}}), (Bytes{{36, 32}}));
}

TEST(Levels, CountCollectivesAndPullPreparationBehindThem) {
  // %2 = 0.5, %3 = mul(0.5, m), %4 = mul(g, g), %5 = all_reduce, %6 = add, %7 = update.
  EXPECT_EQ(Levels(ProgramOf("input g : f32[8] local\nstate m : f32[8]\n"
                             "update(m, 0.5 * m + all_reduce(sum, g * g))\n")),
            (std::vector<int>{0, 1, 1, 1, 0, 1, 1, 1}));
}

}  // namespace
}  // namespace coconet
