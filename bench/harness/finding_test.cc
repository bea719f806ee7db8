#include "bench/harness/finding.h"

#include <fstream>

#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

TEST(Finding, SurvivesItsFile) {
  const std::string file = testing::TempDir() + "/findings";
  const std::vector<Finding> findings = {
      {.side = "ours",
       .of = "f16:16777216",
       .name = "a name",
       .timing = {.median_us = 12.25, .low_us = 12, .high_us = 13.5, .samples = 101},
       .steps = 7,
       .preempted = 3},
      {.side = "variant", .of = "f32", .detail = "fuse(RS, C, AG) (two-shot)"}};
  ASSERT_TRUE(WriteFindings(file, findings).ok());
  const absl::StatusOr<std::vector<Finding>> read = ReadFindings(file);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, findings);
}

TEST(Finding, IsOneLine) {
  const std::string file = testing::TempDir() + "/lines";
  ASSERT_TRUE(WriteFindings(file, {Finding{.side = "fact", .detail = "two\tparts\nof it"}}).ok());
  const absl::StatusOr<std::vector<Finding>> read = ReadFindings(file);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1);
  EXPECT_EQ(read->front().detail, "two parts of it");
}

TEST(Finding, IsNotReadFromWhatIsNoFinding) {
  const std::string file = testing::TempDir() + "/noise";
  std::ofstream(file) << "hello\n";
  EXPECT_EQ(ReadFindings(file).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadFindings(file + "-absent").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace coconet::bench
