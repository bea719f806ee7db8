#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/calls.h"
#include "runtime/host/host_rank.h"
#include "runtime/join.h"
#include "runtime/node/memory.h"
#include "runtime/processes/out_of_band_transport.h"
#include "runtime/processes/process_world.h"
#include "runtime/testing/all_reduce_checks.h"
#include "runtime/testing/all_to_all_checks.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/gatherer.h"
#include "runtime/testing/lane_checks.h"
#include "runtime/testing/send_checks.h"

namespace coconet {
namespace {

using testing::HasSubstr;

absl::Status JoinAndRun(Gatherer& gatherer, WorldOptions world, const RankBody& body) {
  ASSIGN_OR_RETURN(std::unique_ptr<Membership> member,
                   Join({.world = world, .out_of_band = gatherer.way()}));
  absl::Status status = body(member->rank());
  if (!status.ok()) member->Leave(status);
  EXPECT_EQ(gatherer.begun, gatherer.released);
  return status;
}

/// Joins `ranks` threads, each of which runs `body`; by rank.
std::vector<absl::Status> OnThreads(int ranks, const WorldOptions& world, const RankBody& body) {
  return GatherOnThreads(
      ranks, [&](Gatherer& gatherer, int /*rank*/) { return JoinAndRun(gatherer, world, body); });
}

/// The same for processes.
std::vector<std::string> OnProcesses(int ranks, const WorldOptions& world, const RankBody& body) {
  return GatherOnProcesses(
      ranks, [&](Gatherer& gatherer, int /*rank*/) { return JoinAndRun(gatherer, world, body); });
}

using Check = absl::Status (*)(Rank&);
struct Case {
  const char* name;
  Check check;
  int ranks;
  WorldShape shape = {};
};

const std::pair<const char*, Check> kChecks[] = {
    {"Exchange", CheckExchange},
    {"Collectives", CheckCollectives},
    {"LargeCollectives", CheckLargeCollectives},
    {"CollectiveSteps", CheckCollectiveSteps},
    {"AllToAlls", CheckAllToAlls},
    {"AllReduces", CheckAllReduces},
    {"Memory", CheckMemory},
    {"Plans", CheckPlans},
    {"SendsInKernels", CheckSendsInKernels},
    {"OrderOfLanes", CheckOrderOfLanes},
    {"CollectivesOnBothLanes", CheckCollectivesOnBothLanes}};

/// Joins ranks on `machines` machines, whose names are made up, as forked processes.
std::vector<std::string> OnMachines(int ranks, int machines, const WorldRequest& request,
                                    const RankBody& body) {
  return GatherOnProcesses(ranks, [&](Gatherer& gatherer, int rank) -> absl::Status {
    ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport,
                     OutOfBandTransport::Over(gatherer.way(),
                                              absl::StrCat("machine", rank / (ranks / machines))));
    ASSIGN_OR_RETURN(const std::unique_ptr<ProcessWorld> world,
                     ProcessWorld::Join(std::move(transport), request, MakeHostRank));
    const absl::Status status = body(world->rank());
    if (!status.ok()) world->Leave(status);
    return status;
  });
}

std::vector<Case> Cases() {
  const std::pair<int, WorldShape> worlds[] = {{1, {}},
                                               {2, {}},
                                               {3, {}},
                                               {4, {.stages = 1, .nodes = 2}},
                                               {6, {.stages = 3, .nodes = 0}},
                                               {8, {.stages = 2, .nodes = 4}}};
  std::vector<Case> cases;
  for (const auto& [ranks, shape] : worlds) {
    for (const auto& [name, check] : kChecks) cases.push_back({name, check, ranks, shape});
  }
  return cases;
}

class JoinedWorld : public testing::TestWithParam<Case> {};

TEST_P(JoinedWorld, OfThreadsDoes) {
  const Case& c = GetParam();
  const WorldOptions world{.stages = c.shape.stages, .nodes = c.shape.nodes, .pin = false};
  for (const absl::Status& status : OnThreads(c.ranks, world, c.check))
    EXPECT_EQ(status, absl::OkStatus());
}

TEST_P(JoinedWorld, OfProcessesDoes) {
  const Case& c = GetParam();
  const WorldOptions world{.stages = c.shape.stages, .nodes = c.shape.nodes, .pin = false};
  for (const std::string& status : OnProcesses(c.ranks, world, c.check)) EXPECT_EQ(status, "OK");
}

INSTANTIATE_TEST_SUITE_P(All, JoinedWorld, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           return absl::StrCat(info.param.name, "_", info.param.ranks, "x",
                                               info.param.shape.stages, "x",
                                               info.param.shape.nodes);
                         });

TEST(Machines, AreConnectedByTcp) {
  for (const auto& [name, check] : kChecks) {
    for (const std::string& status : OnMachines(4, 2, {.timeout_s = 60, .pin = false}, check))
      EXPECT_EQ(status, "OK") << name;
  }
}

TEST(Machines, MayEachHaveAPipelineStage) {
  const WorldRequest request{.shape = {.stages = 2}, .timeout_s = 60, .pin = false};
  for (const Check check : {CheckExchange, CheckCollectives, CheckSendsInKernels}) {
    for (const std::string& status : OnMachines(4, 2, request, check)) EXPECT_EQ(status, "OK");
  }
}

TEST(Machines, HearOfARankThatFails) {
  const auto body = [](Rank& rank) {
    return rank.rank() == 1 ? absl::InternalError("a fault") : rank.exchange().Barrier();
  };
  const std::vector<std::string> said = OnMachines(4, 2, {.timeout_s = 30, .pin = false}, body);
  EXPECT_THAT(said[0], HasSubstr("rank 1 left: INTERNAL: a fault"));
  EXPECT_THAT(said[3], HasSubstr("rank 1 left: INTERNAL: a fault"));
}

TEST(Machines, NameTheRankThatDoesNotCome) {
  const auto body = [](Rank& rank) {
    if (rank.rank() == 2) sleep(3);
    return rank.exchange().Barrier();
  };
  const std::vector<std::string> said = OnMachines(3, 3, {.timeout_s = 1, .pin = false}, body);
  EXPECT_THAT(said[0], HasSubstr("waited 1 s for rank 2"));
  EXPECT_THAT(said[1], HasSubstr("waited 1 s for rank 2"));
}

TEST(Processes, JoinAgainAfterLeaving) {
  const auto body = [](Rank& rank) { return rank.exchange().Barrier(); };
  const std::shared_ptr<Region> memory = Gatherer::TableMemory();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Gatherer gatherer(memory, rank, 2);
      for (int time = 0; time < 3; ++time)
        EXPECT_EQ(JoinAndRun(gatherer, {.pin = false}, body), absl::OkStatus());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A rank in two worlds at once, whose ranks have other numbers in each.
TEST(Processes, JoinTwoWorldsAtOnce) {
  const std::shared_ptr<Region> first = Gatherer::TableMemory(), second = Gatherer::TableMemory();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Gatherer one(first, rank, 2);
      Gatherer other(second, 1 - rank, 2);
      const absl::StatusOr<std::unique_ptr<Membership>> a = Join({.out_of_band = one.way()});
      const absl::StatusOr<std::unique_ptr<Membership>> b = Join({.out_of_band = other.way()});
      ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
      EXPECT_EQ((*a)->rank().exchange().Broadcast(absl::StrCat(rank)).value(), "0");
      EXPECT_EQ((*b)->rank().exchange().Broadcast(absl::StrCat(rank)).value(), "1");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Join, NamesTheRankThatNeverComes) {
  const std::shared_ptr<Region> memory = Gatherer::TableMemory();
  Gatherer gatherer(memory, 0, 2);
  const absl::Status status =
      Join({.world = {.timeout_s = 0.1, .pin = false}, .out_of_band = gatherer.way()}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("waited 0.1 s for rank 1"));
}

TEST(Join, PassesOnTheCallersWords) {
  const std::shared_ptr<Region> memory = Gatherer::TableMemory();
  Gatherer gatherer(memory, 0, 1);
  gatherer.fails_at = 1;
  const absl::Status status = Join({.out_of_band = gatherer.way()}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the socket is closed"));
}

TEST(Join, RefusesWhatMakesNoSense) {
  const auto join = [](const OutOfBand& way) { return Join({.out_of_band = way}).status(); };
  EXPECT_TRUE(absl::IsInvalidArgument(join({.rank = 2, .ranks = 2})));
  EXPECT_TRUE(absl::IsInvalidArgument(join({.rank = -1, .ranks = 2})));
  EXPECT_TRUE(absl::IsInvalidArgument(join({.rank = 0, .ranks = 0})));
  EXPECT_TRUE(absl::IsInvalidArgument(join({.rank = 0, .ranks = 2})));  // no all_gather
  int comm = 0;
  EXPECT_TRUE(
      absl::IsInvalidArgument(Join({.out_of_band = OutOfBand{}, .mpi_comm = &comm}).status()));
  EXPECT_TRUE(
      absl::IsUnimplemented(Join({.world = {.backend = Backend::kSimt, .pin = false}}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(Join({.world = {.stages = 2, .pin = false}}).status()));  // of 1 rank
}

TEST(Join, FindsNumbersThatAreMixedUp) {
  const std::shared_ptr<Region> memory = Gatherer::TableMemory();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Gatherer gatherer(memory, rank, 2);
      gatherer.swaps = true;
      const absl::Status status =
          Join({.world = {.timeout_s = 5, .pin = false}, .out_of_band = gatherer.way()}).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("Are the ranks' numbers right?"));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Processes, HearOfADeadRank) {
  const auto body = [](Rank& rank) -> absl::Status {
    RETURN_IF_ERROR(rank.exchange().Barrier());
    if (rank.rank() == 1) _exit(0);
    return rank.exchange().Barrier();
  };
  const std::vector<std::string> said = OnProcesses(3, {.timeout_s = 30, .pin = false}, body);
  EXPECT_THAT(said[0], HasSubstr("rank 1 left: UNAVAILABLE: its process ended"));
  EXPECT_THAT(said[2], HasSubstr("rank 1 left: UNAVAILABLE: its process ended"));
}

void Begin(Rank& rank, absl::string_view call) { rank.calls()->Begin(call); }

absl::Status SumOnes(Rank& rank) {
  float one = 1, sum = 0;
  return rank.library().AllReduce(&one, &sum, 1, DType::kF32, ReduceKind::kSum);
}

/// The last rank exchanges messages, the others reduce.
absl::Status ReduceButOnTheLastRank(Rank& rank) {
  Begin(rank, "Bind");
  RETURN_IF_ERROR(rank.exchange().Barrier());
  const bool is_last = rank.rank() == rank.size() - 1;
  Begin(rank, is_last ? "Read of m" : "Run of sgd");
  return is_last ? rank.exchange().Barrier() : SumOnes(rank);
}

/// The last rank exchanges messages of another call.
absl::Status ExchangeInTwoCalls(Rank& rank) {
  Begin(rank, rank.rank() == rank.size() - 1 ? "Read of m" : "Run of sgd");
  return rank.exchange().Barrier();
}

/// The last rank reduces for another plan.
absl::Status ReduceForTwoPlans(Rank& rank) {
  const bool is_last = rank.rank() == rank.size() - 1;
  Begin(rank, is_last ? "Read of m" : "Run of sgd");
  rank.library().Announce(is_last ? 1 : 2);
  return SumOnes(rank);
}

/// The last rank has gone on to its next call.
absl::Status ComeTooOften(Rank& rank) {
  Begin(rank, "Run of sgd");
  if (rank.rank() == rank.size() - 1) Begin(rank, "Read of m");
  return rank.exchange().Barrier();
}

constexpr Check kDifferences[] = {ReduceButOnTheLastRank, ExchangeInTwoCalls, ReduceForTwoPlans,
                                  ComeTooOften};

void ExpectBothCalls(const std::string& said) {
  EXPECT_THAT(said, HasSubstr("the ranks call differently: rank "));
  EXPECT_THAT(said, HasSubstr("Run of sgd"));
  EXPECT_THAT(said, HasSubstr("Read of m"));
}

TEST(Threads, AreToldThatTheyCallDifferently) {
  for (const Check check : kDifferences) {
    for (const int nodes : {1, 2}) {
      for (const absl::Status& said :
           OnThreads(4, {.nodes = nodes, .timeout_s = 30, .pin = false}, check))
        ExpectBothCalls(said.ToString());
    }
  }
}

TEST(Processes, AreToldThatTheyCallDifferently) {
  for (const Check check : kDifferences) {
    for (const int nodes : {1, 2}) {
      for (const std::string& said :
           OnProcesses(4, {.nodes = nodes, .timeout_s = 30, .pin = false}, check))
        ExpectBothCalls(said);
    }
  }
}

TEST(Machines, AreToldThatTheyCallDifferently) {
  for (const Check check : kDifferences) {
    for (const int machines : {2, 4}) {
      for (const std::string& said :
           OnMachines(4, machines, {.timeout_s = 30, .pin = false}, check))
        ExpectBothCalls(said);
    }
  }
}

TEST(Threads, HearOfARankThatFails) {
  const auto body = [](Rank& rank) {
    return rank.rank() == 1 ? absl::InternalError("a fault") : rank.exchange().Barrier();
  };
  const std::vector<absl::Status> said = OnThreads(3, {.timeout_s = 30, .pin = false}, body);
  EXPECT_TRUE(absl::IsAborted(said[0])) << said[0];
  EXPECT_THAT(std::string(said[2].message()), HasSubstr("rank 1 left: INTERNAL: a fault"));
}

}  // namespace
}  // namespace coconet
