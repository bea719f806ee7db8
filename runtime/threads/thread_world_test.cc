#include "runtime/threads/thread_world.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/node/budget.h"
#include "runtime/node/cpu.h"
#include "runtime/testing/all_reduce_checks.h"
#include "runtime/testing/all_to_all_checks.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/lane_checks.h"
#include "runtime/testing/send_checks.h"

namespace coconet {
namespace {

constexpr double kTimeout = 60;

using Check = absl::Status (*)(Rank&);
struct Case {
  const char* name;
  Check check;
  int ranks;
  WorldShape shape = {};
};

class ThreadWorld : public testing::TestWithParam<Case> {};

TEST_P(ThreadWorld, Does) {
  const Case& c = GetParam();
  EXPECT_EQ(RunThreadWorld({c.ranks, c.shape, kTimeout}, c.check), absl::OkStatus());
}

struct World {
  int ranks;
  WorldShape shape = {};
};
const World kWorlds[] = {{1},
                         {2},
                         {3},
                         {4},
                         {8},
                         {4, {.stages = 1, .nodes = 2}},
                         {6, {.stages = 1, .nodes = 3}},
                         {6, {.stages = 3, .nodes = 0}},
                         {3, {.stages = 3, .nodes = 0}},
                         {8, {.stages = 2, .nodes = 4}}};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const auto& [ranks, shape] : kWorlds) {
    cases.push_back({"Exchange", CheckExchange, ranks, shape});
    cases.push_back({"Collectives", CheckCollectives, ranks, shape});
    cases.push_back({"LargeCollectives", CheckLargeCollectives, ranks, shape});
    cases.push_back({"CollectiveSteps", CheckCollectiveSteps, ranks, shape});
    cases.push_back({"AllToAlls", CheckAllToAlls, ranks, shape});
    cases.push_back({"AllReduces", CheckAllReduces, ranks, shape});
    cases.push_back({"Memory", CheckMemory, ranks, shape});
    cases.push_back({"Plans", CheckPlans, ranks, shape});
    cases.push_back({"SyncGuards", CheckSyncGuardsOfPlans, ranks, shape});
    cases.push_back({"SendsInKernels", CheckSendsInKernels, ranks, shape});
    cases.push_back({"MatrixProducts", CheckMatrixProducts, ranks, shape});
    cases.push_back({"ProductsOnBothLanes", CheckProductsOnBothLanes, ranks, shape});
    cases.push_back({"OrderOfLanes", CheckOrderOfLanes, ranks, shape});
    cases.push_back({"CollectivesOnBothLanes", CheckCollectivesOnBothLanes, ranks, shape});
    cases.push_back({"StepsBesideOthers", CheckStepsBesideOthers, ranks, shape});
  }
  return cases;
}

std::vector<Case> LongCases() {
  std::vector<Case> cases;
  for (const auto& [ranks, shape] : kWorlds)
    cases.push_back({"AllCollectives", CheckAllCollectives, ranks, shape});
  return cases;
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return c.name + std::to_string(c.ranks) + "x" + std::to_string(c.shape.stages) + "x" +
         std::to_string(c.shape.nodes);
}
INSTANTIATE_TEST_SUITE_P(All, ThreadWorld, testing::ValuesIn(AllCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Long, ThreadWorld, testing::ValuesIn(LongCases()), NameOf);

absl::Status OnThreads(int ranks, double timeout_s, const RankBody& body) {
  return RunThreadWorld({ranks, {}, timeout_s}, body);
}

// Runs `body` in a failing world; returns each rank's status.
std::vector<std::string> Outcomes(int ranks, double timeout_s, const RankBody& body) {
  std::vector<std::string> outcomes(ranks);
  OnThreads(ranks, timeout_s, [&](Rank& rank) {
    const absl::Status status = body(rank);
    outcomes[rank.rank()] = status.ToString();
    return status;
  }).IgnoreError();
  return outcomes;
}

int64_t EntriesOf(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

TEST(ThreadWorldFailure, NamesStepFlagAndAbsentRankAtTheDeadline) {
  EXPECT_EQ(OnThreads(2, 60, [](Rank& rank) { return CheckDeadline(rank, 0.2); }),
            absl::OkStatus());
  EXPECT_EQ(OnThreads(4, 60, [](Rank& rank) { return CheckDeadline(rank, 0.2); }),
            absl::OkStatus());
}

TEST(ThreadWorldFailure, OfAKernelNamesTheRankInTheWorld) {
  EXPECT_EQ(RunThreadWorld({4, {.nodes = 2}}, [](Rank& rank) { return CheckDeadline(rank, 0.2); }),
            absl::OkStatus());
}

// Rank 3 of three stages of two ranks: it receives from rank 1 and sends to rank 5.
TEST(ThreadWorldFailure, OfAKernelThatSendsEndsTheWaitsOfOtherStages) {
  std::vector<std::string> outcomes(6);
  RunThreadWorld({6, {.stages = 3}}, [&](Rank& rank) {
    const absl::Status status = RunSendSteps(rank, 1000, 60, [&](int step) {
      return rank.rank() == 3 && step == 5 ? absl::DataLossError("bad page") : absl::OkStatus();
    });
    outcomes[rank.rank()] = status.ToString();
    return status;
  }).IgnoreError();
  for (int rank : {1, 5}) {
    EXPECT_THAT(outcomes[rank], testing::StartsWith(absl::StrCat(
                                    "ABORTED: step 0 \"pass on\" on rank ", rank, ": ")));
    EXPECT_THAT(outcomes[rank], testing::EndsWith("rank 3 left: DATA_LOSS: bad page"));
  }
  EXPECT_EQ(outcomes[3], "DATA_LOSS: bad page");
}

TEST(ThreadWorldFailure, OfAKernelThatSendsNamesTheRankOfTheOtherStage) {
  std::vector<std::string> outcomes(3);
  RunThreadWorld({3, {.stages = 3}}, [&](Rank& rank) {
    const absl::Status status =
        RunSendSteps(rank, rank.rank() == 1 ? 5 : 6, 0.2, [&](int) { return absl::OkStatus(); });
    outcomes[rank.rank()] = status.ToString();
    return rank.exchange().Barrier();
  }).IgnoreError();
  const auto waited = [](int rank, const char* flag) {
    return absl::StrCat("DEADLINE_EXCEEDED: step 0 \"pass on\" on rank ", rank,
                        ": waited 0.2 s for rank 1, flag ", flag, ": want epoch 6, found 5; ");
  };
  // The rank whose deadline comes first stops the other.
  const auto stopped = [](int rank, int by) {
    return testing::StartsWith(absl::StrCat("ABORTED: step 0 \"pass on\" on rank ", rank, ": rank ",
                                            by, " gave up: step 0"));
  };
  EXPECT_THAT(outcomes[0],
              testing::AnyOf(testing::StartsWith(waited(0, "enter[0]")), stopped(0, 2)));
  EXPECT_EQ(outcomes[1], "OK");
  EXPECT_THAT(outcomes[2],
              testing::AnyOf(testing::StartsWith(waited(2, "done[0]")), stopped(2, 0)));
}

TEST(ThreadWorldFailure, ReachesOtherNodesAndStages) {
  for (Group group : kAllGroups) {
    const absl::Status status = RunThreadWorld({8, {.stages = 2, .nodes = 4}}, [&](Rank& rank) {
      if (rank.rank() == 7) return absl::DataLossError("bad page");
      float x[2] = {}, y[2] = {};
      while (true) {
        RETURN_IF_ERROR(rank.library(group).AllReduce(x, y, 2, DType::kF32, ReduceKind::kSum));
        RETURN_IF_ERROR(rank.library(group).Run(
            {.kind = CollectiveStep::Kind::kSend, .dtype = DType::kF32, .count = 2}, x, y));
      }
    });
    EXPECT_EQ(status, absl::DataLossError("bad page"));
  }
}

TEST(ThreadWorldFailure, IsTheFirstErrorThatARankHadOfItsOwn) {
  const absl::Status status = OnThreads(3, 60, [](Rank& rank) {
    return rank.rank() == 1 ? absl::DataLossError("bad page") : rank.exchange().Barrier();
  });
  EXPECT_EQ(status, absl::DataLossError("bad page"));
}

TEST(ThreadWorldFailure, EndsWaitsOfAllKindsAtOnce) {
  const auto error = absl::DataLossError("bad page");
  EXPECT_THAT(
      Outcomes(3, 60,
               [&](Rank& rank) { return rank.rank() == 1 ? error : rank.exchange().Barrier(); }),
      testing::ElementsAre("ABORTED: exchange on rank 0: rank 1 left: DATA_LOSS: bad page",
                           "DATA_LOSS: bad page",
                           "ABORTED: exchange on rank 2: rank 1 left: DATA_LOSS: bad page"));
  EXPECT_THAT(Outcomes(2, 60,
                       [&](Rank& rank) {
                         float x = 1;
                         return rank.rank() == 1 ? error
                                                 : rank.library().AllReduce(&x, &x, 1, DType::kF32,
                                                                            ReduceKind::kSum);
                       }),
              testing::ElementsAre("ABORTED: AllReduce on rank 0: rank 1 left: DATA_LOSS: bad page",
                                   "DATA_LOSS: bad page"));
  EXPECT_THAT(Outcomes(2, 60, [&](Rank& rank) { return LeaveOthersInAStep(rank, error); }),
              testing::ElementsAre("ABORTED: step 0 \"one-shot sum\" on rank 0: waited for rank 1, "
                                   "flag enter[0]: want epoch 1, found 0; "
                                   "rank 1 left: DATA_LOSS: bad page",
                                   "DATA_LOSS: bad page"));
}

TEST(ThreadWorldFailure, EndsBothLanesAtOnce) {
  const auto error = absl::DataLossError("bad page");
  const std::vector<std::string> outcomes =
      Outcomes(3, 60, [&](Rank& rank) { return LeaveOthersInBothLanes(rank, error); });
  for (int rank : {0, 1}) {  // either lane may see it first
    EXPECT_THAT(outcomes[rank], testing::StartsWith("ABORTED: step "));
    EXPECT_THAT(outcomes[rank], testing::HasSubstr(absl::StrCat(" on rank ", rank)));
    EXPECT_THAT(outcomes[rank], testing::HasSubstr("rank 2 left: DATA_LOSS: bad page"));
  }
}

TEST(ThreadWorldFailure, EndsWhatOutlastsItsStep) {
  const auto error = absl::DataLossError("bad page");
  const std::vector<std::string> outcomes =
      Outcomes(3, 60, [&](Rank& rank) { return LeaveOthersBetweenSteps(rank, error); });
  for (int rank : {0, 1}) {
    EXPECT_THAT(outcomes[rank], testing::StartsWith("ABORTED: step 3 \"AR\""));
    EXPECT_THAT(outcomes[rank], testing::HasSubstr("rank 2 left: DATA_LOSS: bad page"));
  }
}

TEST(ThreadWorldFailure, OfOneLaneEndsTheOther) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> outcomes =
      Outcomes(2, 60, [](Rank& rank) { return OutwaitLaneZero(rank, 0.2); });
  const std::string reason =
      "DEADLINE_EXCEEDED: step 0 \"one-shot sum\" on rank 0: waited 0.2 s for rank 1, flag "
      "enter[0]: want epoch 1, "
      "found 0; rank 1 may be dead or behind; COCONET_TIMEOUT sets the deadline";
  EXPECT_THAT(outcomes,
              testing::ElementsAre(reason, "ABORTED: exchange on rank 1: rank 0 left: " + reason));
  EXPECT_LT(std::chrono::steady_clock::now() - start,
            std::chrono::seconds(30));  // the library's deadline is 60 s
}

TEST(ThreadWorldFailure, IsSaidOfARankThatReturnsTooEarly) {
  const auto early = [](Rank& rank) {
    return rank.rank() == 1 ? absl::OkStatus() : rank.exchange().Barrier();
  };
  EXPECT_EQ(OnThreads(2, 60, early), absl::AbortedError("exchange on rank 0: rank 1 has finished"));
}

TEST(ThreadWorldFailure, ReachesTheRankThatComesAfterTheDeadline) {
  const std::vector<std::string> outcomes = Outcomes(2, 0.2, [](Rank& rank) {
    if (rank.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(600));
    return rank.exchange().Barrier();
  });
  const std::string reason =
      "exchange on rank 0: waited 0.2 s for rank 1; rank 1 may be dead or behind; COCONET_TIMEOUT "
      "sets the deadline";
  EXPECT_THAT(outcomes,
              testing::ElementsAre(
                  "DEADLINE_EXCEEDED: " + reason,
                  "ABORTED: exchange on rank 1: rank 0 left: DEADLINE_EXCEEDED: " + reason));
}

TEST(ThreadWorldFailure, OfBindingIsTheSameOnAllRanks) {
  EXPECT_EQ(OnThreads(3, 60, CheckBindErrors), absl::OkStatus());
  EXPECT_EQ(RunThreadWorld({8, {.stages = 2, .nodes = 4}}, CheckBindErrors), absl::OkStatus());
}

TEST(ThreadWorldAfterwards, LeavesNothingBehind) {
  const std::vector<int> cores = AllowedCores();
  const int64_t threads = EntriesOf("/proc/self/task"), handles = EntriesOf("/proc/self/fd");
  EXPECT_EQ(OnThreads(4, 60, CheckPlans), absl::OkStatus());
  EXPECT_EQ(AllowedCores(), cores);
  // A joined thread stays listed for a moment.
  for (int i = 0; i < 1000 && EntriesOf("/proc/self/task") != threads; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(EntriesOf("/proc/self/task"), threads);
  EXPECT_EQ(EntriesOf("/proc/self/fd"), handles);
}

TEST(ThreadWorldTopology, IsThisMachine) {
  const size_t cores = AllowedCores().size();
  const auto check = [&](Rank& rank) {
    const Topology& t = rank.topology();
    EXPECT_EQ(t.device, ThisCpu().name);
    EXPECT_EQ(t.vector_bytes, ThisCpu().vector_bytes);
    EXPECT_EQ(t.library, "thread");
    EXPECT_EQ(t.nodes, 1);
    EXPECT_EQ(t.ranks_per_node, 3);
    EXPECT_EQ(t.cores, static_cast<int>(cores));
    EXPECT_EQ(t.memory_bytes, MemoryLimitBytes());
    EXPECT_GT(t.memory_bytes, int64_t{64} << 20);
    EXPECT_EQ(t.gpu_memory_bytes, 0);
    EXPECT_EQ(t.links, "");
    EXPECT_EQ(AllowedCores().size(), 1u);  // pinned
    return absl::OkStatus();
  };
  EXPECT_EQ(OnThreads(3, 60, check), absl::OkStatus());
}

}  // namespace
}  // namespace coconet
