#include "runtime/node/wait.h"

#include <chrono>
#include <thread>

#include "gtest/gtest.h"

namespace coconet {
namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool Never() { return false; }

TEST(TermsFor, SpinsOnlyWhereEveryWaiterHasACore) {
  EXPECT_GT(TermsFor(2, 2, 60).spins, 0u);
  EXPECT_EQ(TermsFor(3, 2, 60).spins, 0u);
  EXPECT_EQ(TermsFor(3, 2, 60).timeout_ns, 60000000000);
}

TEST(WaitUntil, SeesWhatIsReadyWithoutPausing) {
  EXPECT_EQ(WaitUntil({.spins = 0, .timeout_ns = 0}, [] { return true; }, Never), WaitEnd::kReady);
}

TEST(WaitUntil, SeesAFlagThatComesLate) {
  std::atomic<unsigned> flag = 0;
  std::thread setter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    flag.store(1, std::memory_order_release);
  });
  EXPECT_EQ(WaitUntil(
                TermsFor(1, 1, 60), [&] { return Reached(flag.load(), 1); }, Never),
            WaitEnd::kReady);
  setter.join();
}

TEST(WaitUntil, GivesUpAtTheDeadline) {
  for (double timeout_s : {0.0, 0.0005, 0.1}) {
    const double start = Seconds();
    EXPECT_EQ(WaitUntil(TermsFor(2, 1, timeout_s), Never, Never), WaitEnd::kDeadline);
    EXPECT_GE(Seconds() - start, timeout_s);
    EXPECT_LT(Seconds() - start, timeout_s + 2);
  }
}

TEST(WaitUntil, GivesUpWhenInVainButNotWhenReadyAsWell) {
  EXPECT_EQ(WaitUntil(TermsFor(2, 1, 60), Never, [] { return true; }), WaitEnd::kInVain);
  bool ready = false;
  const auto both_at_once = [&] { return ready = true; };
  EXPECT_EQ(WaitUntil(TermsFor(2, 1, 60), [&] { return ready; }, both_at_once), WaitEnd::kReady);
}

TEST(Reached, WrapsAround) {
  EXPECT_TRUE(Reached(5, 5));
  EXPECT_TRUE(Reached(6, 5));
  EXPECT_FALSE(Reached(4, 5));
  EXPECT_TRUE(Reached(2, 0xfffffffe));
  EXPECT_FALSE(Reached(0xfffffffe, 2));
}

}  // namespace
}  // namespace coconet
