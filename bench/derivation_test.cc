#include "bench/derivation.h"

#include "coconet/schedule.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

TEST(MeasureDerivation, CountsWhatIsDerived) {
  const WorkloadInfo sgd = Workloads()[0];
  const absl::StatusOr<Row> row = MeasureDerivation(sgd, DType::kF32, 3);
  ASSERT_TRUE(row.ok()) << row.status();
  const absl::StatusOr<Graph> program = BindSizes(*MakeWorkload(sgd.name), sgd.presets[0].sizes);
  ASSERT_TRUE(program.ok());
  const absl::StatusOr<std::vector<Schedule>> schedules = Derive(*program);
  ASSERT_TRUE(schedules.ok());
  EXPECT_EQ(row->Number("schedules"), static_cast<double>(schedules->size()));
  EXPECT_EQ(std::get<std::string>(row->Get("sizes")), "N=1Mi");
  EXPECT_GT(row->Number("graphs"), 0);
  EXPECT_GT(row->Number("ours_us"), 0);
  EXPECT_EQ(row->Number("rounds"), 3);
}

}  // namespace
}  // namespace coconet::bench
