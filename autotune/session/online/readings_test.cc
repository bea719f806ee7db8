#include "autotune/session/online/readings.h"

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/session/online/explorer.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "runtime/join.h"
#include "runtime/testing/gatherer.h"
#include "runtime/world.h"

namespace coconet {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(Readings, AreTheSameOnAllRanks) {
  for (const bool one_machine : {true, false}) {
    const absl::Status status = RunWorld({.ranks = 2}, [&](Rank& rank) -> absl::Status {
      // Rank 1 comes to the first call 30 us after rank 0, which waits for it. In the second call
      // the clock of rank 1 is another one's.
      Readings mine;
      if (rank.rank() == 0)
        mine = {.calls = {{100, 150}, {200, 260}}, .exchange_us = 9, .work_us = 1};
      else
        mine = {.calls = {{130, 148}, {500, 540}}, .exchange_us = 4, .work_us = 3};
      ASSIGN_OR_RETURN(const AgreedReadings agreed, AgreeOn(rank.exchange(), mine, one_machine));
      EXPECT_THAT(agreed.call_us, ElementsAre(one_machine ? 20 : 50, one_machine ? 40 : 60));
      EXPECT_EQ(agreed.agreement_us, 4 + 3) << "the last rank's exchange, the longest work";
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(Readings, OfOtherCallsAreRefused) {
  std::string messages[2];
  const absl::Status status = RunWorld({.ranks = 2}, [&](Rank& rank) {
    const Readings mine{.calls = std::vector<Readings::Span>(1 + rank.rank())};
    messages[rank.rank()] = AgreeOn(rank.exchange(), mine, true).status().ToString();
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(
      messages[0],
      "INTERNAL: explored steps: want readings of 1 calls from each rank, have 2 from rank 1");
  EXPECT_EQ(
      messages[1],
      "INTERNAL: explored steps: want readings of 2 calls from each rank, have 1 from rank 0");
}

/// A rank of a job whose clock is simulated: the ranks come late by other times, and measure other
/// ones. An error if they run other variants in some call, or do not go over to the fastest, which
/// is number 2.
absl::Status RunJob(Exchange& exchange, int rank, bool one_machine) {
  const std::vector<double> step_us = {1000, 1050, 900, 970};
  Explorer explorer(step_us, 20, {});
  std::mt19937_64 random(rank + 1);
  std::uniform_real_distribution<double> uniform;
  Readings mine{.exchange_us = 20};
  std::string variants;
  double now_us = 0;
  for (int call = 0; call < 3000; ++call) {
    const Explorer::Call next = explorer.Next();
    absl::StrAppend(&variants, next.variant);
    now_us += 5000;
    if (next.timed) {
      const double late_us = 30 * uniform(random);
      const double takes_us = step_us[next.variant] * (1 + 0.1 * uniform(random));
      mine.calls.push_back({now_us + late_us, now_us + late_us + takes_us});
    }
    if (!next.agrees) continue;
    ASSIGN_OR_RETURN(const AgreedReadings agreed, AgreeOn(exchange, mine, one_machine));
    explorer.Agree(agreed.call_us, agreed.agreement_us);
    mine = {.exchange_us = 15 + 10 * uniform(random), .work_us = 5 * uniform(random)};
  }
  RETURN_IF_ERROR(exchange.CheckSame("the variants of the calls", variants));
  if (explorer.incumbent() == 2 && explorer.switches() > 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("runs variant ", explorer.incumbent()));
}

TEST(Readings, MakeAllRanksSwitchAtOneCall) {
  for (const bool one_machine : {true, false}) {
    const absl::Status status = RunWorld({.ranks = 3}, [&](Rank& rank) {
      return RunJob(rank.exchange(), rank.rank(), one_machine);
    });
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(Readings, MakeAllProcessesSwitchAtOneCall) {
  const std::vector<std::string> statuses =
      GatherOnProcesses(3, [](Gatherer& gatherer, int rank) -> absl::Status {
        ASSIGN_OR_RETURN(
            const std::unique_ptr<Membership> member,
            Join({.world = {.timeout_s = 60, .pin = false}, .out_of_band = gatherer.way()}));
        RETURN_IF_ERROR(RunJob(member->rank().exchange(), rank, true));
        return member->rank().exchange().Barrier();
      });
  EXPECT_THAT(statuses, Each("OK"));
}

}  // namespace
}  // namespace coconet
