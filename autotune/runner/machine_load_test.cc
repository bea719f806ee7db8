#include "autotune/runner/machine_load.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
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

double BusySeconds(const CoreTimes& times) {
  double sum = 0;
  for (const auto& [core, busy_s] : times.busy_s) sum += busy_s;
  return sum;
}

/// A world of one rank.
class SoloExchange final : public Exchange {
 public:
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override {
    return std::vector<std::string>{std::string(mine)};
  }
};

TEST(MachineLoad, CountsWhatItsCoresDo) {
  const CoreTimes before = ReadCoreTimes();
  ASSERT_FALSE(before.busy_s.empty());
  const double own = OwnProcessorSeconds();
  Burn(std::chrono::milliseconds(300));
  const CoreTimes after = ReadCoreTimes();
  EXPECT_EQ(after.busy_s.size(), before.busy_s.size());
  const double elapsed_s = after.elapsed_s - before.elapsed_s;
  EXPECT_GE(elapsed_s, 0.3);
  const double own_s = OwnProcessorSeconds() - own,
               busy_s = BusySeconds(after) - BusySeconds(before);
  EXPECT_GT(own_s, 0);
  EXPECT_LE(own_s, elapsed_s + 0.05);
  EXPECT_GE(busy_s, own_s - 0.1) << "what this thread used is part of it";
  EXPECT_LE(busy_s, elapsed_s * static_cast<double>(after.busy_s.size()) + 0.1);
}

TEST(MachineLoad, AThreadThatIsPinnedSeesTheProcesssCores) {
  const size_t cores = ReadCoreTimes().busy_s.size();
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(ReadCoreTimes().busy_s.size(), cores);
  }).join();
}

// Another process burns all cores: whatever else runs, others use a part of them.
TEST(MachineLoad, OthersAreWhatThisProcessIsNot) {
  SoloExchange solo;
  LoadMeter meter;
  EXPECT_LT(meter.ByOthers(solo).value(), 0) << "nothing to compare with yet";
  EXPECT_LT(meter.ByOthers(solo).value(), 0) << "too little time";
  std::vector<pid_t> burners;
  for (size_t i = 0; i < ReadCoreTimes().busy_s.size(); ++i) {
    burners.push_back(fork());
    if (burners.back() == 0) {
      Burn(std::chrono::seconds(2));
      _exit(0);
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  const double load = meter.ByOthers(solo).value();
  for (pid_t burner : burners) waitpid(burner, nullptr, 0);
  EXPECT_GT(load, 0.5);
  EXPECT_LE(load, 1);
}

TEST(MachineLoad, ManyThreadsWaitForCores) {
  const double before = SecondsWithoutCore();
  EXPECT_GE(before, 0);
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (size_t i = 0; i < 4 * ReadCoreTimes().busy_s.size(); ++i) {
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
