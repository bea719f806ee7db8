// The benchmark runs to its end, and its rows have what is derived. Tests do not check times.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/harness/benchmark_run.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

TEST(Schedules, AreCountedAsTheyAreDerived) {
  const Finished run = RunBenchmark("compiler/schedules", {"--quick", "--json=schedules.json"});
  EXPECT_EQ(run.code, 0) << run.output;
  const WorkloadInfo sgd = Workloads()[0];
  const absl::StatusOr<Graph> program = BindSizes(*MakeWorkload(sgd.name), sgd.presets[0].sizes);
  ASSERT_TRUE(program.ok());
  std::vector<size_t> counts;
  for (const char* nodes : {"one", "several"}) {
    const auto schedules = Derive(*program, {.by_node = !counts.empty()});
    ASSERT_TRUE(schedules.ok());
    counts.push_back(schedules->size());
    const std::string row =
        absl::StrCat("$.case = 'sgd' AND $.dtype = 'f32' AND $.sizes = 'N=1Mi' AND $.nodes = '",
                     nodes, "' AND $.schedules = ", counts.back());
    EXPECT_EQ(
        RowsOf("schedules.json", row + " AND $.graphs > 0 AND $.ours_us > 0 AND $.rounds = 1"), 1)
        << run.output;
  }
  EXPECT_GT(counts[1], counts[0]);
}

TEST(Schedules, OfStepsWithProductsHaveAMostFusedOne) {
  const Finished run =
      RunBenchmark("compiler/schedules", {"--quick", "--case=layers", "--json=layers.json"});
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_EQ(RowsOf("layers.json", "$.case = 'gpt_step' AND $.kernels > 10 AND $.compile_s > 0"), 2)
      << run.output;
}

}  // namespace
}  // namespace coconet::bench
