#include "autotune/measure/machine_load.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace coconet {
namespace {

using Clock = std::chrono::steady_clock;

void Burn(std::chrono::milliseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

TEST(MachineLoad, CountsWhatItsCoresDo) {
  const CoreTimes before = ReadCoreTimes();
  ASSERT_GT(before.cores, 0);
  const double own = OwnProcessorSeconds();
  Burn(std::chrono::milliseconds(300));
  const CoreTimes after = ReadCoreTimes();
  EXPECT_EQ(after.cores, before.cores);
  const double elapsed_s = after.elapsed_s - before.elapsed_s;
  EXPECT_GE(elapsed_s, 0.3);
  const double own_s = OwnProcessorSeconds() - own, busy_s = after.busy_s - before.busy_s;
  EXPECT_GT(own_s, 0);
  EXPECT_LE(own_s, elapsed_s + 0.05);
  EXPECT_GE(busy_s, own_s - 0.1) << "what this thread used is part of it";
  EXPECT_LE(busy_s, elapsed_s * after.cores + 0.1);
}

TEST(MachineLoad, ManyThreadsWaitForCores) {
  const double before = SecondsWithoutCore();
  EXPECT_GE(before, 0);
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 4 * ReadCoreTimes().cores; ++i) {
    others.emplace_back([&] {
      while (!stop) {
      }
    });
  }
  // Until the scheduler has taken the core away at least once.
  const auto end = Clock::now() + std::chrono::seconds(20);
  while (SecondsWithoutCore() == before && Clock::now() < end) Burn(std::chrono::milliseconds(20));
  stop = true;
  for (std::thread& other : others) other.join();
  EXPECT_GT(SecondsWithoutCore(), before);
}

}  // namespace
}  // namespace coconet
