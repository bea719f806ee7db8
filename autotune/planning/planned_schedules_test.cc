#include "autotune/planning/planned_schedules.h"

#include <limits>
#include <random>

#include "absl/algorithm/container.h"
#include "autotune/cost/nominal_cost_model.h"
#include "autotune/planning/plan_graph.h"
#include "autotune/simulation/testing/random_tasks.h"
#include "coconet/language/text.h"
#include "coconet/testing/random_program.h"
#include "coconet/workloads/training_steps.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

Graph Gpt(int64_t layers) { return *GptStep({.layers = layers, .width = 16, .heads = 2}); }

std::vector<PlannedSchedule> PlansOf(const Graph& program, const PlanningOptions& options,
                                     const NominalRates& of = {.link_bytes_per_us = 100}) {
  const NominalCostModel rates(of);
  absl::StatusOr<std::vector<PlannedSchedule>> planned =
      PlannedSchedules(program, Target(2, 2), rates, options);
  EXPECT_TRUE(planned.ok()) << planned.status();
  return planned.ok() ? *std::move(planned) : std::vector<PlannedSchedule>{};
}

TEST(PlannedSchedules, AreSchedulesWithTheKernelsThatWerePlanned) {
  const std::vector<PlannedSchedule> planned =
      PlansOf(Gpt(2), {.search = {.seconds = kNoLimit, .evaluations = 2000}});
  ASSERT_FALSE(planned.empty());
  for (const PlannedSchedule& plan : planned) {
    EXPECT_EQ(plan.refused_fusions, 0);
    EXPECT_FALSE(plan.schedule.kernels().empty());
    EXPECT_LE(plan.bound_us, plan.us + 1e-6);
    EXPECT_GT(plan.peak_bytes, 0);
    EXPECT_FALSE(plan.schedule.buckets().empty());
    EXPECT_EQ(plan.schedule.issued().size(), plan.schedule.launches().list.size());
  }
}

TEST(PlannedSchedules, ReplayFromTheirTraces) {
  const Graph program = Gpt(1);
  for (const PlannedSchedule& plan :
       PlansOf(program, {.search = {.seconds = kNoLimit, .evaluations = 500}})) {
    const absl::StatusOr<Schedule> replayed = Replay(program, plan.schedule.trace());
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(Print(*replayed), Print(plan.schedule));
  }
}

TEST(PlannedSchedules, AreLegalForRandomPrograms) {
  const uint64_t seed = FreshTaskSeed();
  std::mt19937_64 random(seed);
  int kernels = 0;
  for (int i = 0; i < 30; ++i) {
    const Graph symbolic =
        RandomProgram(random(), {.kind = i % 2 == 0 ? ProgramKind::kStep : ProgramKind::kModel,
                                 .operations = 40,
                                 .max_communications = 6});
    const absl::StatusOr<Graph> program = BindSizes(symbolic, {});
    ASSERT_TRUE(program.ok()) << program.status();
    for (const PlannedSchedule& plan :
         PlansOf(*program, {.search = {.seconds = kNoLimit, .evaluations = 300}})) {
      EXPECT_EQ(plan.refused_fusions, 0) << "COCONET_SEED=" << seed << " program " << i;
      const absl::StatusOr<Schedule> replayed = Replay(*program, plan.schedule.trace());
      ASSERT_TRUE(replayed.ok()) << "COCONET_SEED=" << seed << " program " << i;
      EXPECT_EQ(Print(*replayed), Print(plan.schedule));
      kernels += static_cast<int>(plan.schedule.kernels().size());
    }
  }
  EXPECT_GT(kernels, 30);
}

TEST(PlannedSchedules, UpdateOnSlicesWhereThatIsFaster) {
  // Updates of large states take long beside products of one token.
  const Graph program =
      *MlpStep({.layers = 2, .inputs = 256, .width = 256, .outputs = 256, .examples = 1});
  const std::vector<PlannedSchedule> planned =
      PlansOf(program, {.search = {.seconds = kNoLimit, .evaluations = 2000}},
              {.launch_us = 0.1, .latency_us = 1, .link_bytes_per_us = 1e5, .tensor_us = 0});
  ASSERT_FALSE(planned.empty());
  const auto splits = [](const Transformation& t) { return std::holds_alternative<Split>(t); };
  EXPECT_TRUE(absl::c_any_of(planned[0].schedule.trace(), splits));
}

TEST(PlannedSchedules, ReportWhatIsNoProgram) {
  Graph graph;
  graph.Add(Pointwise{Pw::kAdd}, {});
  const NominalCostModel rates({});
  EXPECT_FALSE(PlannedSchedules(graph, Target(2), rates).ok());
}

}  // namespace
}  // namespace coconet
