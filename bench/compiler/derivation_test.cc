#include "bench/compiler/derivation.h"

#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/schedule.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

TEST(MeasureDerivation, CountsWhatIsDerived) {
  const WorkloadInfo sgd = Workloads()[0];
  const absl::StatusOr<Row> row = MeasureDerivation(sgd, DType::kF32, 3, /*by_node=*/false);
  ASSERT_TRUE(row.ok()) << row.status();
  const absl::StatusOr<Graph> program = BindSizes(*MakeWorkload(sgd.name), sgd.presets[0].sizes);
  ASSERT_TRUE(program.ok());
  const absl::StatusOr<std::vector<Schedule>> schedules = Derive(*program);
  ASSERT_TRUE(schedules.ok());
  EXPECT_EQ(row->Number("schedules"), static_cast<double>(schedules->size()));
  EXPECT_EQ(std::get<std::string>(row->Get("sizes")), "N=1Mi");
  EXPECT_GT(row->Number("graphs"), 0);
  EXPECT_EQ(std::get<std::string>(row->Get("nodes")), "one");
  const absl::StatusOr<Row> by_node = MeasureDerivation(sgd, DType::kF32, 1, /*by_node=*/true);
  ASSERT_TRUE(by_node.ok()) << by_node.status();
  EXPECT_EQ(std::get<std::string>(by_node->Get("nodes")), "several");
  EXPECT_GT(by_node->Number("schedules"), row->Number("schedules"));
  EXPECT_GT(row->Number("ours_us"), 0);
  EXPECT_EQ(row->Number("rounds"), 3);
}

}  // namespace
}  // namespace coconet::bench
