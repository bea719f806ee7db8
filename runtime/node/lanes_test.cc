#include "runtime/node/lanes.h"

#include <chrono>

#include "gtest/gtest.h"

namespace coconet {
namespace {

KernelStep StepOf(int lane, std::vector<int> after) {
  return {.symbol = "k", .args = {}, .label = "K", .lane = lane, .after = std::move(after)};
}

TEST(CheckLanes, RefusesLanesAndOrdersThatCannotBe) {
  const auto refusal = [](std::vector<Step> steps) {
    return std::string(CheckLanes({.buffers = {}, .steps = std::move(steps)}).message());
  };
  EXPECT_EQ(refusal({StepOf(0, {}), StepOf(1, {0}), StepOf(0, {0, 1})}), "");
  EXPECT_EQ(refusal({StepOf(2, {})}), "Bind: K: want lane 0 or 1, have 2");
  EXPECT_EQ(refusal({StepOf(-1, {})}), "Bind: K: want lane 0 or 1, have -1");
  EXPECT_EQ(refusal({StepOf(0, {0})}), "Bind: K: want steps before 0 in `after`, have 0");
  EXPECT_EQ(refusal({StepOf(0, {}), StepOf(0, {2})}),
            "Bind: K: want steps before 1 in `after`, have 2");
  EXPECT_EQ(refusal({StepOf(0, {-1})}), "Bind: K: want steps before 0 in `after`, have -1");
}

TEST(CheckLanes, RefusesToAwaitWhatCannotRunMeanwhile) {
  const auto refusal = [](const KernelStep& first, int awaits) {
    KernelStep second = StepOf(1, {});
    second.awaits = awaits;
    return std::string(CheckLanes({.buffers = {}, .steps = {first, second}}).message());
  };
  KernelStep waiting = StepOf(0, {});
  waiting.args.push_back({Arg::Kind::kControl, -1, 0});
  EXPECT_EQ(refusal(StepOf(0, {}), 0), "");
  EXPECT_EQ(refusal(waiting, -1), "");
  EXPECT_EQ(refusal(waiting, 0), "");  // for peers
  const std::string want = "Bind: K: want an earlier kernel of the other lane in `awaits`, have ";
  EXPECT_EQ(refusal(StepOf(1, {}), 0), want + "0");
  EXPECT_EQ(refusal(StepOf(0, {}), 1), want + "1");
  EXPECT_EQ(refusal(StepOf(0, {}), -2), want + "-2");
}

TEST(OrderOf, CountsTheStepsOfTheOtherLaneThatMustBeDone) {
  const Plan plan{.buffers = {},
                  .steps = {StepOf(0, {}), StepOf(1, {0}), StepOf(0, {0}), StepOf(1, {2, 0, 1}),
                            StepOf(0, {1}), StepOf(1, {})}};
  const LaneOrder order = OrderOf(plan);
  EXPECT_EQ(order.of[0], (std::vector<LaneOrder::Entry>{{0, 0}, {2, 0}, {4, 1}}));
  EXPECT_EQ(order.of[1], (std::vector<LaneOrder::Entry>{{1, 1}, {3, 2}, {5, 0}}));
  EXPECT_TRUE(UsesLane(plan, 1));
  EXPECT_FALSE(UsesLane({.buffers = {}, .steps = {StepOf(0, {})}}, 1));
}

TEST(CheckLanes, RefusesStepsThatCannotOutlastTheirRun) {
  Plan plan{.buffers = {{"in", BufferRole::kInput}, {"a", BufferRole::kTemp}},
            .steps = {StepOf(0, {}), StepOf(1, {}), StepOf(1, {})}};
  const auto refusal = [&](std::vector<Outlasting> outlasting) {
    plan.outlasting = std::move(outlasting);
    return std::string(CheckLanes(plan).message());
  };
  const std::string want =
      "Bind: plan: want outlasting steps that are lane 1's last ones, use no inputs and outputs, "
      "and for which no step waits, have step ";
  EXPECT_EQ(refusal({{2, 0}}), "");
  EXPECT_EQ(refusal({{1, 0}, {2, -1}}), "");
  EXPECT_EQ(refusal({{1, -1}}), want + "1 until -1");
  EXPECT_EQ(refusal({{2, 3}}), want + "2 until 3");
  EXPECT_EQ(refusal({{0, -1}, {1, -1}, {2, -1}}), want + "0 until -1");
  std::get<KernelStep>(plan.steps[2]).args = {{Arg::Kind::kOwn, 1, 0}};
  EXPECT_EQ(refusal({{2, -1}}), "");
  std::get<KernelStep>(plan.steps[2]).args = {{Arg::Kind::kOwn, 0, 0}};
  EXPECT_EQ(refusal({{2, -1}}), want + "2 until -1");
  std::get<KernelStep>(plan.steps[2]).args = {};
  plan.steps.emplace_back(StepOf(0, {2}));
  EXPECT_EQ(refusal({{2, -1}}), want + "2 until -1");
}

TEST(OrderOf, CountsTheStepsOfTheRunBeforeThatMayBeToDo) {
  const Plan plan{.buffers = {},
                  .steps = {StepOf(0, {}), StepOf(0, {}), StepOf(1, {0}), StepOf(1, {}),
                            StepOf(0, {}), StepOf(1, {})},
                  .outlasting = {{2, 1}, {3, 4}, {5, -1}}};
  const LaneOrder order = OrderOf(plan);
  EXPECT_EQ(order.of[0], (std::vector<LaneOrder::Entry>{{0, 0, 3}, {1, 0, 2}, {4, 0, 1}}));
  EXPECT_EQ(order.of[1], (std::vector<LaneOrder::Entry>{{2, 1}, {3, 0}, {5, 0}}));
}

TEST(StepsTogether, AreThoseThatWaitForNothingMore) {
  const auto all_to_all = [](int in, int out, std::vector<int> after = {}) {
    CollectiveStep step{.kind = CollectiveStep::Kind::kAllToAll, .in = in, .out = out};
    step.lane = 1;
    step.after = std::move(after);
    return step;
  };
  const auto together = [](std::vector<Step> steps) {
    const Plan plan{.buffers = {}, .steps = std::move(steps)};
    const LaneOrder order = OrderOf(plan);
    return StepsTogether(plan, order.of[1], 0);
  };
  EXPECT_EQ(together({all_to_all(0, 1), all_to_all(2, 3), all_to_all(0, 4)}), 3u);
  EXPECT_EQ(together({all_to_all(0, 1), all_to_all(1, 2)}), 1u) << "takes what the first brings";
  EXPECT_EQ(together({all_to_all(0, 1), all_to_all(2, 0)}), 1u) << "overwrites what it takes";
  EXPECT_EQ(together({all_to_all(0, 1), all_to_all(2, 1)}), 1u) << "overwrites what it brings";
  CollectiveStep counted = all_to_all(2, 3);
  counted.rows = {.leaving = 4, .arriving = 1};
  EXPECT_EQ(together({all_to_all(0, 1), counted}), 1u) << "needs its counts";
  EXPECT_EQ(together({StepOf(0, {}), all_to_all(0, 1, {0}), StepOf(0, {}), all_to_all(2, 3, {0}),
                      all_to_all(4, 5, {2})}),
            2u);
  CollectiveStep other = all_to_all(2, 3);
  other.group = Group::kNode;
  EXPECT_EQ(together({all_to_all(0, 1), other}), 1u);
  const auto all_reduce = [](int in, int out, DType dtype = DType::kF32) {
    CollectiveStep step{
        .kind = CollectiveStep::Kind::kAllReduce, .dtype = dtype, .in = in, .out = out};
    step.lane = 1;
    return step;
  };
  EXPECT_EQ(together({all_reduce(0, 0), all_reduce(1, 2), all_reduce(3, 3)}), 3u);
  EXPECT_EQ(together({all_reduce(0, 1), all_reduce(1, 1)}), 1u) << "takes what the first brings";
  EXPECT_EQ(together({all_reduce(0, 1), all_reduce(2, 3, DType::kBF16)}), 1u);
  EXPECT_EQ(together({all_reduce(0, 1), all_to_all(2, 3)}), 1u);
  EXPECT_EQ(together({StepOf(1, {}), all_to_all(0, 1)}), 0u) << "begins with another step";
}

TEST(LaneThread, RunsOneJobAfterAnother) {
  LaneThread thread({});
  int sum = 0;  // written by the lane's thread only, read when it is done
  for (int i = 0; i < 1000; ++i) {
    thread.Start([](void* argument) { ++*static_cast<int*>(argument); }, &sum);
    thread.Finish(i % 2 * 100);
    ASSERT_EQ(sum, i + 1);
  }
}

TEST(LaneThread, GoesHomeThoughItNeverWorked) { LaneThread thread({0}); }

TEST(LaneThread, SleepsWhileItHasNothingToDo) {
  LaneThread thread({});
  thread.Start([](void*) {}, nullptr);
  thread.Finish(0);
  const std::clock_t before = std::clock();  // processor time of all threads
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 20);
}

}  // namespace
}  // namespace coconet
