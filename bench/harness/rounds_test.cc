#include "bench/harness/rounds.h"

#include <chrono>
#include <thread>

#include "gtest/gtest.h"
#include "runtime/world.h"

namespace coconet::bench {
namespace {

/// Sleeps `us` microseconds per step on rank `slow`; does nothing on the others.
Contender SlowOn(int slow, Rank& rank, int us) {
  return {"slow", [=, here = rank.rank()](int64_t steps) {
            if (here == slow) std::this_thread::sleep_for(std::chrono::microseconds(us * steps));
            return absl::OkStatus();
          }};
}

TEST(MeasureInRounds, TakesTheSlowestRanksTime) {
  const absl::Status status = RunWorld({.ranks = 2}, [](Rank& rank) -> absl::Status {
    const Contender contenders[] = {SlowOn(0, rank, 2000), SlowOn(1, rank, 2000)};
    ASSIGN_OR_RETURN(const std::vector<Finding> measured,
                     MeasureInRounds(rank, contenders, {.seconds = 0, .min_rounds = 3}));
    for (const Finding& m : measured) {
      EXPECT_GE(m.timing.low_us, 2000) << "rank " << rank.rank();
      EXPECT_EQ(m.timing.samples, 3);
      EXPECT_EQ(m.steps, 1);
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(MeasureInRounds, MakesShortStepsASampleTogether) {
  const absl::Status status = RunWorld({.ranks = 2}, [](Rank& rank) -> absl::Status {
    int64_t calls = 0, steps = 0;
    const Contender idle = {"idle", [&](int64_t n) {
                              ++calls;
                              steps += n;
                              std::this_thread::sleep_for(std::chrono::milliseconds(n));
                              return absl::OkStatus();
                            }};
    // A hundred steps, so that no pause of a loaded machine fills a sample.
    ASSIGN_OR_RETURN(
        const std::vector<Finding> free,
        MeasureInRounds(rank, {idle}, {.seconds = 0, .min_rounds = 2, .min_sample_us = 1e5}));
    EXPECT_GT(free.front().steps, 1);
    calls = steps = 0;
    ASSIGN_OR_RETURN(const std::vector<Finding> fixed,
                     MeasureInRounds(rank, {idle}, {.seconds = 0, .min_rounds = 2, .steps = 30}));
    EXPECT_EQ(fixed.front().steps, 30);
    // One sample to set the pace and two rounds, each after an untimed step.
    EXPECT_EQ(calls, 6);
    EXPECT_EQ(steps, 3 * 31);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(MeasureInRounds, EndsWithAContendersError) {
  const absl::Status status = RunWorld({.ranks = 1}, [](Rank& rank) -> absl::Status {
    const Contender broken = {"broken",
                              [](int64_t) { return absl::InternalError("out of steam"); }};
    return MeasureInRounds(rank, {broken}, {}).status();
  });
  EXPECT_EQ(status.message(), "out of steam");
}

}  // namespace
}  // namespace coconet::bench
