#include "runtime/node/budget.h"

#include <filesystem>
#include <fstream>
#include <limits>

#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

/// A fake machine of 1 GiB (reserve: 32 MiB) with 512 MiB available, in a folder of its own.
class Budget : public testing::Test {
 protected:
  Budget() {
    root_ = std::filesystem::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
    Write("proc/meminfo",
          "MemTotal:        1048576 kB\nMemFree:          1024 kB\nMemAvailable:     524288 kB\n");
  }
  ~Budget() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  int64_t Available() {
    return AvailableBytes({.proc = root_ / "proc", .cgroup = root_ / "cgroup"});
  }
  int64_t Limit() { return MemoryLimitBytes({.proc = root_ / "proc", .cgroup = root_ / "cgroup"}); }

 private:
  std::filesystem::path root_;
};

TEST_F(Budget, IsWhatTheMachineHasLeftLessAReserve) { EXPECT_EQ(Available(), (512 - 32) * kMiB); }

TEST_F(Budget, IsTheLeastOfAllGroupsAbove) {
  Write("proc/self/cgroup", "0::/job/step\n");
  Write("cgroup/job/memory.max", "209715200\n");  // 200 MiB
  Write("cgroup/job/memory.current", "104857600\n");
  Write("cgroup/job/memory.stat", "anon 1\ninactive_file 20971520\n");  // 20 MiB are reclaimable
  Write("cgroup/job/step/memory.max", "max\n");
  Write("cgroup/job/step/memory.current", "104857600\n");
  EXPECT_EQ(Available(), (200 - 100 + 20 - 32) * kMiB);
}

TEST_F(Budget, KnowsTheFirstVersionOfGroupsToo) {
  Write("proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/job\n0::/\n");
  Write("cgroup/memory/job/memory.limit_in_bytes", "104857600\n");
  Write("cgroup/memory/job/memory.usage_in_bytes", "52428800\n");
  Write("cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 0\n");
  EXPECT_EQ(Available(), (100 - 50 - 32) * kMiB);
}

TEST_F(Budget, IsNeverNegative) {
  Write("proc/self/cgroup", "0::/\n");
  Write("cgroup/memory.max", "1048576\n");
  Write("cgroup/memory.current", "2097152\n");
  EXPECT_EQ(Available(), 0);
}

TEST_F(Budget, IsUnlimitedWhereNothingSays) {
  Write("proc/meminfo", "");
  EXPECT_EQ(Available(), std::numeric_limits<int64_t>::max());
}

TEST_F(Budget, LimitIsThatOfTheMachineOrOfItsStrictestGroup) {
  EXPECT_EQ(Limit(), 1024 * kMiB);
  Write("proc/self/cgroup", "0::/job/step\n");
  Write("cgroup/job/memory.max", "209715200\n");  // 200 MiB
  Write("cgroup/job/memory.current", "104857600\n");
  Write("cgroup/job/step/memory.max", "max\n");
  EXPECT_EQ(Limit(), 200 * kMiB);
  Write("proc/meminfo", "MemTotal:        102400 kB\n");
  EXPECT_EQ(Limit(), 100 * kMiB);
}

TEST_F(Budget, LimitIsZeroWhereNothingSays) {
  Write("proc/meminfo", "");
  EXPECT_EQ(Limit(), 0);
}

TEST(CheckFits, SaysTheSizes) {
  EXPECT_EQ(CheckFits(2, 4096), absl::OkStatus());
  const absl::Status refused = CheckFits(4, int64_t{1} << 50);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      std::string(refused.message()).find("Allocate: 4 ranks x 1.0 PiB do not fit: this machine"),
      0u)
      << refused;
}

TEST(SizeText, RoundsToOneUnit) {
  EXPECT_EQ(SizeText(0), "0 B");
  EXPECT_EQ(SizeText(1023), "1023 B");
  EXPECT_EQ(SizeText(1536), "1.5 KiB");
  EXPECT_EQ(SizeText(int64_t{20} << 30), "20.0 GiB");
}

}  // namespace
}  // namespace coconet
