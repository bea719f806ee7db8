#include "autotune/planning/copies.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/cost/nominal_cost_model.h"
#include "autotune/planning/first_plan.h"
#include "autotune/planning/planned_schedules.h"
#include "autotune/simulation/testing/random_tasks.h"
#include "coconet/language/text.h"
#include "coconet/workloads/training_steps.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

CopiedSchedule CopiedFor(const Graph& program, const NominalCostModel& rates) {
  const PlanGraph graph = *PlanGraph::Of(*InitialSchedule(program), Target(2, 2), rates);
  return WithCopies(FusedPlan(graph));
}

/// Its trace makes it again.
void ExpectReplays(const CopiedSchedule& copied, const Graph& program, const std::string& where) {
  const absl::StatusOr<Schedule> replayed =
      Replay(program, *ParseTrace(TraceText(copied.schedule.trace())));
  ASSERT_TRUE(replayed.ok()) << replayed.status() << where;
  EXPECT_EQ(Print(*replayed), Print(copied.schedule)) << where;
  EXPECT_EQ(copied.copies > 0, !copied.schedule.trace().empty()) << where;
}

TEST(Copies, AreComputedAgainInsteadOfRead) {
  // The kernel behind the AllReduce takes y, and x, which is all that y is computed from.
  const Graph program = *Parse(R"(coconet 1
input x : f32[65536] local
state s : f32[65536] local
y = exp(x)
update(s, all_reduce(sum, y) * x + y)
)");
  const NominalCostModel rates({});
  const CopiedSchedule copied = CopiedFor(program, rates);
  EXPECT_EQ(copied.copies, 1);
  ExpectReplays(copied, program, "");
}

TEST(Copies, AreNotMadeWhereReadingIsFaster) {
  // y would be computed from three tensors that its kernel alone takes.
  const Graph program = *Parse(R"(coconet 1
input a : f32[65536] local
input b : f32[65536] local
input c : f32[65536] local
state s : f32[65536] local
y = a * b * c
update(s, all_reduce(sum, y) + y)
)");
  const NominalCostModel rates({});
  EXPECT_EQ(CopiedFor(program, rates).copies, 0);
}

/// Elementwise operations on vectors, some of them behind AllReduces of earlier ones.
Graph RandomVectors(std::mt19937_64& random) {
  std::string text = R"(coconet 1
input x : f32[65536] local
input y : f32[65536] local
state s : f32[65536] local
)";
  std::vector<std::string> local = {"x", "y"}, all = local;
  const auto of = [&](const std::vector<std::string>& values) {
    return values[random() % values.size()];
  };
  for (int i = 0; i < 16; ++i) {
    const std::string name = absl::StrCat("v", i);
    if (random() % 4 == 0) {
      absl::StrAppend(&text, name, " = all_reduce(sum, ", of(local), ")\n");
    } else {
      absl::StrAppend(&text, name, " = ", of(local), random() % 2 == 0 ? " * " : " + ", of(all),
                      "\n");
      local.push_back(name);
    }
    all.push_back(name);
  }
  return *Parse(
      absl::StrCat(text, "update(s, ", of(all), " * ", all.back(), " + ", local.back(), ")\n"));
}

TEST(Copies, KeepRandomProgramsAsTheyAre) {
  const uint64_t seed = FreshTaskSeed();
  std::mt19937_64 random(seed);
  const NominalCostModel rates({.launch_us = 0.01, .bytes_per_us = 100});
  int copies = 0;
  for (int i = 0; i < 200; ++i) {
    const Graph program = RandomVectors(random);
    const CopiedSchedule copied = CopiedFor(program, rates);
    ExpectReplays(copied, program, absl::StrCat("COCONET_SEED=", seed, " program ", i));
    copies += copied.copies;
  }
  EXPECT_GT(copies, 0) << "COCONET_SEED=" << seed;
}

TEST(Copies, ArePlannedWhereAskedFor) {
  const Graph program = *GptStep({.layers = 2, .width = 16, .heads = 2});
  const NominalCostModel rates({.launch_us = 0.01, .bytes_per_us = 100});
  PlanningOptions options{
      .search = {.seconds = std::numeric_limits<double>::infinity(), .evaluations = 2000}};
  for (bool copies : {false, true}) {
    options.copies = copies;
    const absl::StatusOr<std::vector<PlannedSchedule>> planned =
        PlannedSchedules(program, Target(2, 2), rates, options);
    ASSERT_TRUE(planned.ok()) << planned.status();
    for (const PlannedSchedule& plan : *planned) {
      EXPECT_EQ(plan.refused_fusions, 0);
      EXPECT_TRUE(copies || plan.copies == 0);
      const absl::StatusOr<Schedule> replayed = Replay(program, plan.schedule.trace());
      ASSERT_TRUE(replayed.ok()) << replayed.status();
      EXPECT_EQ(Print(*replayed), Print(plan.schedule));
    }
  }
}

}  // namespace
}  // namespace coconet
