#include "autotune/planning/plan_iteration.h"

#include "autotune/cost/nominal_cost_model.h"
#include "autotune/planning/combined_plan.h"
#include "autotune/planning/plan_tasks.h"
#include "coconet/language/text.h"
#include "coconet/workloads/training_steps.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

const PlanSearchOptions kShort = {.seconds = 1e9, .evaluations = 300};

TEST(PlanIteration, LiesBetweenItsBoundAndWhatIsAsWritten) {
  const absl::StatusOr<Graph> step =
      GptStep({.layers = 2, .width = 32, .heads = 2, .vocabulary = 64, .sequence = 16});
  ASSERT_TRUE(step.ok()) << step.status();
  for (const double link : {10.0, 1000.0, 1e5}) {
    NominalRates rates;
    rates.link_bytes_per_us = link;
    const absl::StatusOr<PlannedIteration> planned =
        PlanIteration(*step, Target(2), NominalCostModel(rates), kShort);
    ASSERT_TRUE(planned.ok()) << planned.status();
    const PlanFigures &found = planned->found, &combined = planned->combined;
    EXPECT_GE(found.us, found.bound_us * (1 - 1e-9)) << link;

    EXPECT_LE(found.us, combined.us) << link;
    EXPECT_LE(combined.us, combined.computation_us * rates.computation_beside +
                               combined.communication_us * rates.collective_beside)
        << link;
    EXPECT_EQ(planned->timeline.us, found.us);
    EXPECT_LE(found.exposed_us, found.us);
  }
}

/// Two gradients of 64 bytes each that are ready one after the other, and one that depends on them.
constexpr char kThree[] = R"(coconet 1
program three
input a : f32[16] local
input b : f32[16] local
x = all_reduce(sum, a)
y = all_reduce(sum, b)
z = all_reduce(sum, a * x + y)
output o = z
)";

TEST(CombinedPlan, MakesOneCallUpToTheLimitOfWhatDoesNotDependOnEachOther) {
  const NominalCostModel model{NominalRates()};
  const auto collectives = [&](double bytes) {
    const absl::StatusOr<Schedule> schedule = InitialSchedule(*Parse(kThree));
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    const absl::StatusOr<PlanGraph> graph = PlanGraph::Of(*schedule, Target(2), model);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return FiguresOf(CombinedPlan(*graph, bytes)).collectives;
  };
  EXPECT_EQ(collectives(63), 3);
  EXPECT_EQ(collectives(127), 3);
  EXPECT_EQ(collectives(128), 2);
  EXPECT_EQ(collectives(1e9), 2);
}

TEST(PlanIteration, CountsWhatOpaqueOperationsCost) {
  const absl::StatusOr<Graph> program = Parse(R"(coconet 1
program costs
input a : f32[16] local
x = opaque(sort, f32, [16], 6e8, 0, a)
y = opaque(all_reduce.of.4, f32, [16], 0, 5e6, x)
output o = y
)");
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<PlannedIteration> planned =
      PlanIteration(*program, Target(8), NominalCostModel{NominalRates()}, kShort);
  ASSERT_TRUE(planned.ok()) << planned.status();
  // 6e8 operations at 6e4 a microsecond, 5e6 bytes at 1e3, and the starts.
  const NominalRates rates;
  EXPECT_EQ(planned->found.collectives, 1);
  EXPECT_DOUBLE_EQ(planned->found.communication_us, rates.latency_us + rates.tensor_us + 5000);
  EXPECT_NEAR(planned->found.computation_us, 10000, 4 * rates.launch_us);
  EXPECT_NEAR(planned->found.us, 15000 + rates.latency_us, 10 * rates.launch_us);
}

TEST(NominalRates, AreOfKnownDevices) {
  for (const std::string& device : NominalDevices()) {
    const absl::StatusOr<NominalRates> rates = NominalRatesOf(device);
    ASSERT_TRUE(rates.ok()) << rates.status();
    EXPECT_GT(rates->flops_per_us_16, rates->flops_per_us);
  }
  EXPECT_EQ(NominalRatesOf("tpu").status().message(),
            "want one of the devices v100, a100, h100, b200, have tpu");
}

}  // namespace
}  // namespace coconet
