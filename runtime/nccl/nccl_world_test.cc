// GPU worlds whose library collectives are NCCL's, over a fake driver and a fake NCCL.

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_executor.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_context.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/nccl/nccl_library.h"
#include "runtime/nccl/testing/host_nccl.h"
#include "runtime/nccl/testing/host_windows.h"
#include "runtime/nccl/testing/library_sum.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/lane_checks.h"
#include "runtime/testing/send_checks.h"
#include "runtime/testing/values.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr double kTimeout = 60;
constexpr char kName[] = "nccl 2.0.0 of a test";

/// A world over HostNccl, or without NCCL for the reason given.
struct World {
  int ranks = 2;
  WorldShape shape = {};
  double timeout_s = kTimeout;
  int devices = 8;
  absl::Status missing = {};
  bool reach = true;  // the GPUs can address each other's memory directly
  const NcclApi* nccl = &HostNccl();
  absl::Status Run(const RankBody& body) const {
    SetHostDevices({.count = devices, .reach_each_other = reach});
    const auto open = [&](const StreamLibraryTerms& terms) {
      const absl::StatusOr<const NcclApi*> none =
          missing.ok() ? absl::StatusOr<const NcclApi*>(nccl) : missing;
      return OpenNcclLibrariesOver(none, terms);
    };
    return RunCudaWorldOver(
        {.driver = HostDriver(), .open_libraries = open, .control = ControlOfHostKernels()},
        {ranks, shape, timeout_s}, body);
  }
  /// The status of every rank.
  std::vector<absl::Status> Outcomes(const RankBody& body) const {
    std::vector<absl::Status> outcomes(ranks);
    Run([&](Rank& rank) { return outcomes[rank.rank()] = body(rank); }).IgnoreError();
    return outcomes;
  }
};

absl::Status CheckUsed(const Rank& rank, absl::string_view want) {
  return rank.topology().library == want
             ? absl::OkStatus()
             : Wrong("want ", want, ", have ", rank.topology().library, ", ", rank.topology().note);
}

// ---- What every world must do

struct Case {
  const char* name;
  absl::Status (*check)(Rank&);
  int ranks;
  WorldShape shape = {};
};
class NcclWorld : public testing::TestWithParam<Case> {};

TEST_P(NcclWorld, Does) {
  const Case& c = GetParam();
  const World world{.ranks = c.ranks, .shape = c.shape};
  EXPECT_EQ(world.Run([&](Rank& rank) {
    RETURN_IF_ERROR(CheckUsed(rank, kName));
    if (rank.library().name() != "nccl" || !rank.topology().note.empty())
      return Wrong(rank.library().name(), rank.topology().note);
    return c.check(rank);
  }),
            absl::OkStatus());
  EXPECT_EQ(NcclCommunicators(), 0);
}

struct Tried {
  int ranks;
  WorldShape shape = {};
};
const Tried kTried[] = {{1},
                        {2},
                        {3},
                        {8},
                        {4, {.stages = 1, .nodes = 2}},
                        {6, {.stages = 3, .nodes = 0}},
                        {8, {.stages = 2, .nodes = 4}}};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const auto& [ranks, shape] : kTried) {
    cases.push_back({"CollectiveSteps", CheckCollectiveSteps, ranks, shape});
    cases.push_back({"StepsOfAllTypes", CheckCollectiveStepsOfAllTypes, ranks, shape});
    cases.push_back({"Plans", CheckPlans, ranks, shape});
    cases.push_back({"SendsInKernels", CheckSendsInKernels, ranks, shape});
    cases.push_back({"OrderOfLanes", CheckOrderOfLanes, ranks, shape});
    cases.push_back({"BindErrors", CheckBindErrors, ranks, shape});
  }
  return cases;
}

std::vector<Case> LongCases() {
  std::vector<Case> cases;
  for (const auto& [ranks, shape] : kTried)
    cases.push_back({"AllStepsOfAllTypes", CheckAllCollectiveStepsOfAllTypes, ranks, shape});
  return cases;
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return absl::StrCat(c.name, c.ranks, "x", c.shape.stages, "x", c.shape.nodes);
}
INSTANTIATE_TEST_SUITE_P(All, NcclWorld, testing::ValuesIn(AllCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Long, NcclWorld, testing::ValuesIn(LongCases()), NameOf);

TEST(Nccl, DoesCollectivesButThoseThatItRoundsTooOften) {
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    for (int ranks : {2, 3}) {
      // The next larger number in the type is 2 more.
      const double first = dtype == DType::kBF16 ? 256 : 2048;
      const int before = NcclCollectives();
      EXPECT_EQ(World{.ranks = ranks}.Run([&](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(const BoundSum bound, BindLibrarySum(rank, 0, 0, dtype));
        StoreElement(dtype, bound.in->own(), 0, rank.rank() == 0 ? first : 1);
        for (int round = 0; round < 5; ++round) RETURN_IF_ERROR(bound.plan->Run());
        const double sum = LoadElement(dtype, bound.out->own(), 0).real(),
                     want = ranks == 3             ? first + 2
                            : dtype == DType::kF32 ? first + 1
                                                   : first;
        return sum == want
                   ? absl::OkStatus()
                   : Wrong(Name(dtype), " of ", ranks, " ranks: want ", want, ", have ", sum);
      }),
                absl::OkStatus());
      EXPECT_EQ(NcclCollectives() - before, ranks == 2 || dtype == DType::kF32 ? 5 * ranks : 0)
          << Name(dtype);
    }
  }
}

TEST(Nccl, RoundsEachAdditionOfNarrowSumsWhereThePlanAdmitsIt) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    const double first = dtype == DType::kBF16 ? 256 : 2048;
    const int before = NcclCollectives();
    EXPECT_EQ(World{.ranks = 3}.Run([&](Rank& rank) -> absl::Status {
      ASSIGN_OR_RETURN(const BoundSum bound,
                       BindLibrarySum(rank, 0, 0, dtype, {.rounds_each = true}));
      StoreElement(dtype, bound.in->own(), 0, rank.rank() == 0 ? first : 1);
      RETURN_IF_ERROR(bound.plan->Run());
      const double sum = LoadElement(dtype, bound.out->own(), 0).real();
      return sum == first ? absl::OkStatus()
                          : Wrong(Name(dtype), ": want ", first, ", twice rounded, have ", sum);
    }),
              absl::OkStatus());
    EXPECT_EQ(NcclCollectives() - before, 3) << Name(dtype);
  }
}

// ---- Worlds without NCCL

/// The world works by way of the host and says why.
void ExpectStaged(const World& world, const std::string& why) {
  std::vector<std::string> notes(world.ranks);
  EXPECT_EQ(world.Run([&](Rank& rank) {
    notes[rank.rank()] = rank.topology().note;
    RETURN_IF_ERROR(CheckUsed(rank, "staged"));
    if (rank.library().name() != "staged") return Wrong(rank.library().name());
    return CheckCollectiveSteps(rank);
  }),
            absl::OkStatus());
  for (const std::string& note : notes) EXPECT_THAT(note, HasSubstr(why));
  EXPECT_EQ(NcclCommunicators(), 0);
}

TEST(Nccl, IsDoneWithoutWhereRanksShareAGpu) {
  ExpectStaged({.ranks = 3, .devices = 2}, "rank 0: 2 ranks share GPU 0");
  ExpectStaged({.ranks = 2, .devices = 1}, "rank 0: 2 ranks share GPU 0");
}

TEST(Nccl, IsDoneWithoutWhereItIsMissing) {
  ExpectStaged({.ranks = 2, .missing = absl::UnavailableError("libnccl.so.2: no such file")},
               "not by NCCL: rank 0: libnccl.so.2: no such file");
}

TEST(Nccl, IsDoneWithoutWhereARankIsNotHeard) {
  SetNcclFaults({.unheard_join = 1});
  ExpectStaged(
      {.ranks = 3, .timeout_s = 2},
      "ncclCommInitRankConfig: waited 1 s for ranks 0 to 2, one of which may be dead or behind");
  SetNcclFaults({});
}

/// Each call of one rank fails in turn while the world starts, later every `later`th, since the
/// same calls repeat; all other calls succeed.
void CheckCallsThatFail(int later) {
  const auto body = [](Rank& rank, std::string& note) -> absl::Status {
    note = rank.topology().note;
    return CheckCollectiveSteps(rank);
  };
  int failed_at_start = 0, failed_later = 0;
  for (int call = 1, step = 1;; call += step) {
    SetNcclFaults({.failing_call = call});
    std::string notes[2];
    const absl::Status status = World{.ranks = 2, .timeout_s = 4}.Run(
        [&](Rank& rank) { return body(rank, notes[rank.rank()]); });
    const std::string failed = FailedNcclCall();
    SetNcclFaults({});
    if (failed.empty()) break;
    EXPECT_EQ(NcclCommunicators(), 0) << failed;
    const auto words =
        AllOf(HasSubstr(failed), HasSubstr("an error of a test (2): what NCCL says"));
    if (!notes[0].empty()) {
      EXPECT_EQ(status, absl::OkStatus());
      EXPECT_THAT(notes[0], words);
      EXPECT_EQ(notes[0], notes[1]);
      ++failed_at_start;
    } else if (failed != "ncclCommFinalize") {
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << failed;
      EXPECT_THAT(std::string(status.message()), words) << failed;
      ++failed_later;
      step = later;
    }
  }
  EXPECT_GT(failed_at_start, 5);
  EXPECT_GT(failed_later, 140 / later);
}

TEST(Nccl, CallsThatFailAreNamedInTheNoteOrTheError) { CheckCallsThatFail(/*later=*/23); }
TEST(LongNccl, CallsThatFailAreNamedInTheNoteOrTheError) { CheckCallsThatFail(/*later=*/7); }

// ---- Memory by NCCL's windows

absl::Status CheckMemoryByWindows(Rank& rank) {
  const std::string& note = rank.topology().note;
  if (!absl::StrContains(note, "memory by windows of nccl 2.0.0 of a test: rank 0: GPU 0"))
    return Wrong("note: ", note);
  RETURN_IF_ERROR(CheckMemory(rank));
  return CheckPlans(rank);
}

TEST(Nccl, SharesMemoryThatIsNotSharedOtherwise) {
  for (const NcclApi* nccl : {&HostNccl(), &NewerHostNccl()}) {
    for (const WorldShape& shape :
         {WorldShape{}, WorldShape{.stages = 1, .nodes = 2}, WorldShape{.stages = 2, .nodes = 0}}) {
      EXPECT_EQ((World{.ranks = 4, .shape = shape, .reach = false, .nccl = nccl}.Run(
                    CheckMemoryByWindows)),
                absl::OkStatus());
      EXPECT_EQ(NcclCommunicators(), 0);
      EXPECT_EQ(HostWindowsLeft(), 0);
    }
  }
}

TEST(Nccl, SaysWhyItSharesNoMemoryEither) {
  const auto outcome = [](const NcclApi& nccl) {
    const absl::Status status = World{.ranks = 2, .reach = false, .nccl = &nccl}.Run(CheckMemory);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(NcclCommunicators() + HostWindowsLeft(), 0);
    EXPECT_THAT(std::string(status.message()), HasSubstr("does not reach the memory of GPU"));
    return std::string(status.message());
  };
  NcclApi other = HostNccl();
  other.version_code = 22807;  // has the functions, but another layout
  EXPECT_THAT(outcome(other), HasSubstr("; nor by windows of nccl 2.0.0 of a test: rank 0: NCCL "
                                        "2.0.0 of a test does not say where its windows are: "
                                        "want 2.28.9, or 2.29"));
  other = NewerHostNccl();
  other.CommWindowRegister = nullptr;
  EXPECT_THAT(outcome(other), HasSubstr("does not say where its windows are"));
  other = NewerHostNccl();
  other.GetPeerDevicePointer = [](NcclWindow, size_t, int, void** pointer) {
    *pointer = nullptr;
    return ncclSuccess;
  };
  EXPECT_THAT(outcome(other),
              HasSubstr("NCCL: this rank does not load and store the memory of rank 1"));
  other = HostNccl();
  other.TeamLsa = [](ncclComm_t) { return NcclTeam{2, 7, 1}; };
  EXPECT_THAT(outcome(other), HasSubstr("a window is not laid out as that version has it"));
  SetNcclFaults({.no_windows = true});
  EXPECT_THAT(outcome(HostNccl()), HasSubstr("NCCL shares no memory between these GPUs"));
  SetNcclFaults({});
}

/// Each call of one rank fails in turn, in worlds whose memory is by windows.
TEST(Nccl, EachCallOfWindowsThatFailsIsNamed) {
  std::set<std::string> named;
  for (int call = 1;; ++call) {
    SetNcclFaults({.failing_call = call});
    const absl::Status status =
        World{.ranks = 2, .timeout_s = 1, .reach = false, .nccl = &NewerHostNccl()}.Run(
            [](Rank& rank) { return rank.Allocate(10000, true).status(); });
    const std::string failed = FailedNcclCall();
    SetNcclFaults({});
    if (failed.empty()) break;
    EXPECT_EQ(NcclCommunicators() + HostWindowsLeft(), 0) << failed;
    if (failed == "ncclCommFinalize") continue;
    EXPECT_FALSE(status.ok()) << failed;
    named.insert(failed);
    // Without NCCL for collectives there are no windows either.
    EXPECT_THAT(std::string(status.message()),
                AnyOf(HasSubstr(failed), HasSubstr("does not reach the memory of GPU")))
        << failed;
  }
  for (const char* call : {"ncclMemAlloc", "ncclCommWindowRegister", "ncclGetPeerDevicePointer"})
    EXPECT_EQ(named.count(call), 1) << call;
}

// ---- Peers that are missing

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TEST(Nccl, ACollectiveWhosePeerDoesNotComeEndsAtTheDeadline) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const double start = Seconds();
    const std::vector<absl::Status> outcomes =
        World{.ranks = 3}.Outcomes([&](Rank& rank) -> absl::Status {
          ASSIGN_OR_RETURN(const BoundSum bound, BindLibrarySum(rank, lane, 0.3));
          RETURN_IF_ERROR(bound.plan->Run());
          if (rank.rank() == 2) return rank.exchange().Barrier();
          const absl::Status first = bound.plan->Run();
          if (bound.plan->Run() != first) return Wrong("the second Run differs from the first");
          return first;
        });
    EXPECT_LT(Seconds() - start, 20);
    for (int rank : {0, 1}) {
      const std::string where = absl::StrCat("step 0 \"sum\" on rank ", rank, ": ");
      const std::string reason =
          "waited 0.3 s for the other ranks, one of which may be dead or behind; COCONET_TIMEOUT "
          "sets the deadline";
      EXPECT_THAT(outcomes[rank].ToString(), AllOf(HasSubstr(where), HasSubstr(reason)));
    }
    EXPECT_TRUE(absl::IsDeadlineExceeded(outcomes[0]) || absl::IsDeadlineExceeded(outcomes[1]));
    EXPECT_TRUE(absl::IsAborted(outcomes[2])) << outcomes[2];
    EXPECT_EQ(NcclCommunicators(), 0);
  }
}

TEST(Nccl, ADeadlineNamesWhoHasFinished) {
  const std::vector<absl::Status> outcomes =
      World{.ranks = 3}.Outcomes([](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(const BoundSum bound, BindLibrarySum(rank, 0, 0.5));
        RETURN_IF_ERROR(bound.plan->Run());
        return rank.rank() == 1 ? absl::OkStatus() : bound.plan->Run();
      });
  for (int rank : {0, 2}) {
    EXPECT_THAT(outcomes[rank].ToString(),
                AllOf(HasSubstr(absl::StrCat("step 0 \"sum\" on rank ", rank, ": ")),
                      HasSubstr("; rank 1 has finished")));
  }
}

TEST(Nccl, ARankThatLeavesEndsTheCollectivesOfOthers) {
  for (const WorldShape& shape : {WorldShape{}, WorldShape{.stages = 1, .nodes = 4}}) {
    const double start = Seconds();
    const std::vector<absl::Status> outcomes =
        World{.ranks = 4, .shape = shape}.Outcomes([&](Rank& rank) -> absl::Status {
          ASSIGN_OR_RETURN(const BoundSum bound, BindLibrarySum(rank, 0, 0));
          RETURN_IF_ERROR(bound.plan->Run());
          return rank.rank() == 3 ? absl::DataLossError("bad page") : bound.plan->Run();
        });
    EXPECT_LT(Seconds() - start, 20);
    for (int rank : {0, 1, 2}) {
      EXPECT_TRUE(absl::IsAborted(outcomes[rank])) << outcomes[rank];
      EXPECT_THAT(outcomes[rank].ToString(),
                  AllOf(HasSubstr(absl::StrCat("step 0 \"sum\" on rank ", rank, ": ")),
                        HasSubstr("bad page")));
    }
    EXPECT_EQ(NcclCommunicators(), 0);
  }
}

TEST(Nccl, ACollectiveThatFailsWhileItIsUnderWayEndsThoseOfAll) {
  SetNcclFaults({.failing_collective = 3, .result = ncclRemoteError});
  const std::vector<absl::Status> outcomes =
      World{.ranks = 3}.Outcomes([&](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(const BoundSum bound, BindLibrarySum(rank, 0, 0));
        return bound.plan->Run();
      });
  SetNcclFaults({});
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_FALSE(outcomes[rank].ok());
    EXPECT_THAT(outcomes[rank].ToString(),
                AllOf(HasSubstr(absl::StrCat("on rank ", rank)),
                      HasSubstr("an error of a test (6): what NCCL says")));
  }
}

// ---- Runs that are enqueued ahead

/// Returns when as many collectives have been called as wanted; false after 20 s.
bool AwaitCollectives(int want) {
  const double start = Seconds();
  while (NcclCollectives() < want && Seconds() - start < 20)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return NcclCollectives() >= want;
}

/// Lets rank 0 call `begin` while no rank calls a library.
absl::Status Between(Rank& rank, const std::function<void()>& begin) {
  RETURN_IF_ERROR(rank.exchange().Barrier());
  if (rank.rank() == 0) begin();
  return rank.exchange().Barrier();
}

/// Runs sums of 1 and 2.
absl::Status SetAndCheck(Rank& rank, const BoundSum& bound,
                         const std::function<absl::Status()>& run) {
  *static_cast<float*>(bound.in->own()) = static_cast<float>(rank.rank() + 1);
  RETURN_IF_ERROR(run());
  const float have = *static_cast<float*>(bound.out->own());
  return have == 3 ? absl::OkStatus() : Wrong("want 3, have ", have);
}

TEST(Nccl, RunsAreEnqueuedBeforeEarlierOnesHaveEnded) {
  for (int lane = 0; lane < kLanes; ++lane) {
    int before = 0, ahead = 0;
    EXPECT_EQ(World{}.Run([&](Rank& rank) -> absl::Status {
      ASSIGN_OR_RETURN(const BoundSum bound, BindLibrarySum(rank, lane, 0));
      RETURN_IF_ERROR(Between(rank, [&] { before = NcclCollectives(); }));
      if (rank.rank() == 1) {
        // Without this rank none of the other's collectives ends.
        AwaitCollectives(before + RunsAhead(1));
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        ahead = NcclCollectives() - before;
      }
      return SetAndCheck(rank, bound, [&] { return bound.plan->RunSteps(20); });
    }),
              absl::OkStatus());
    EXPECT_EQ(ahead, RunsAhead(1));
  }
}

TEST(Nccl, TheHostWaitsOncePerRunStepsNotPerRun) {
  std::map<std::string, int> before, after;
  EXPECT_EQ(World{}.Run([&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const BoundSum bound, BindLibrarySum(rank, 0, 0));
    RETURN_IF_ERROR(Between(rank, [&] { before = HostCalls(); }));
    RETURN_IF_ERROR(SetAndCheck(rank, bound, [&] { return bound.plan->RunSteps(RunsAhead(1)); }));
    return Between(rank, [&] { after = HostCalls(); });
  }),
            absl::OkStatus());
  const auto calls = [&](const char* name) { return after[name] - before[name]; };
  EXPECT_EQ(calls("cuStreamQuery"), 2) << "one that found a stream idle on each rank";
  EXPECT_EQ(calls("cuStreamSynchronize"), 0);
  EXPECT_EQ(calls("cuCtxGetCurrent"), 2);
}

TEST(Nccl, RunsInStreamsOfTheCallersFollowEachOther) {
  EXPECT_EQ(World{}.Run([&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const BoundSum bound, BindLibrarySum(rank, 0, 0));
    CUstream streams[2];
    for (CUstream& stream : streams)
      RETURN_IF_CU(HostDriver(), StreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
    const absl::Status status = SetAndCheck(rank, bound, [&]() -> absl::Status {
      for (int i = 0; i < 30; ++i) {
        RETURN_IF_ERROR(bound.plan->Enqueue(streams[i % 2]));
        if (i % 7 == 6) RETURN_IF_ERROR(bound.plan->RunSteps(3));
      }
      return bound.plan->Wait();
    });
    for (CUstream stream : streams) HostDriver().StreamDestroy(stream);
    return status;
  }),
            absl::OkStatus());
}

TEST(Nccl, ACollectiveOfARunAheadEndsAtTheDeadlineToo) {
  for (int runs : {3, 11}) {  // fewer than are enqueued ahead, and more
    const double start = Seconds();
    const std::vector<absl::Status> outcomes =
        World{.ranks = 2}.Outcomes([&](Rank& rank) -> absl::Status {
          ASSIGN_OR_RETURN(const BoundSum bound, BindLibrarySum(rank, 1, 0.3));
          if (rank.rank() == 0) return bound.plan->RunSteps(20);
          RETURN_IF_ERROR(bound.plan->RunSteps(runs));
          return rank.exchange().Barrier();
        });
    EXPECT_LT(Seconds() - start, 20);
    EXPECT_TRUE(absl::IsDeadlineExceeded(outcomes[0])) << outcomes[0];
    EXPECT_THAT(outcomes[0].ToString(),
                HasSubstr("step 0 \"sum\" on rank 0: waited 0.3 s for the other ranks"));
    EXPECT_TRUE(absl::IsAborted(outcomes[1])) << outcomes[1];
    EXPECT_EQ(NcclCommunicators(), 0);
  }
}

// ---- Contexts

TEST(Nccl, WorksWhateverContextTheCallingThreadHasCurrent) {
  for (CUcontext current : {CUcontext{nullptr}, ContextOf(7)}) {  // no rank's
    for (bool reach : {true, false}) {
      EXPECT_EQ((World{.ranks = 3, .reach = reach}.Run([&](Rank& rank) {
                  return OnThreadWith(current, [&]() -> absl::Status {
                    RETURN_IF_ERROR(CheckCollectiveSteps(rank));
                    RETURN_IF_ERROR(CheckOrderOfLanes(rank));
                    return reach ? CheckPlans(rank) : CheckMemoryByWindows(rank);
                  });
                })),
                absl::OkStatus());
    }
  }
}

TEST(Nccl, AGpuThatIsLostEndsRunsOfAllWithItsName) {
  for (const char* call : {"cuEventRecord", "cuStreamQuery"}) {
    const double start = Seconds();
    const std::vector<absl::Status> outcomes = World{}.Outcomes([&](Rank& rank) -> absl::Status {
      ASSIGN_OR_RETURN(const BoundSum bound, BindLibrarySum(rank, 0, 0));
      RETURN_IF_ERROR(bound.plan->RunSteps(2));
      RETURN_IF_ERROR(
          Between(rank, [&] { EndContextAt(1, CUDA_ERROR_NVLINK_UNCORRECTABLE, 1, call); }));
      const absl::Status first = bound.plan->RunSteps(4);
      const absl::Status second = bound.plan->Run();
      return first.ok() || second == first ? second : Wrong("another error: ", second.ToString());
    });
    FailCall(0, CUDA_SUCCESS);
    EXPECT_LT(Seconds() - start, 20);
    EXPECT_TRUE(absl::IsDataLoss(outcomes[1])) << outcomes[1];
    EXPECT_THAT(outcomes[1].ToString(),
                AllOf(HasSubstr("GPU 1: step 0 \"sum\" on rank 1: "), HasSubstr(call)));
    for (const absl::Status& outcome : outcomes)
      EXPECT_THAT(outcome.ToString(), HasSubstr("CUDA_ERROR_NVLINK_UNCORRECTABLE (220)"));
    EXPECT_EQ(NcclCommunicators(), 0);
  }
}

TEST(Nccl, AGpuThatIsLostEndsCollectivesByWayOfTheHost) {
  const double start = Seconds();
  const std::vector<absl::Status> outcomes =
      World{.missing = absl::UnavailableError("none")}.Outcomes([&](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(const BoundSum bound, BindLibrarySum(rank, 0, 0));
        RETURN_IF_ERROR(bound.plan->Run());
        RETURN_IF_ERROR(Between(
            rank, [&] { EndContextAt(1, CUDA_ERROR_ILLEGAL_ADDRESS, 1, "cuMemcpyAsync"); }));
        const absl::Status run = bound.plan->Run();
        rank.exchange().Barrier().IgnoreError();  // as who compares how the ranks' runs ended
        return run;
      });
  FailCall(0, CUDA_SUCCESS);
  EXPECT_LT(Seconds() - start, 20) << "rank 0 waits for the other";
  EXPECT_TRUE(absl::IsDataLoss(outcomes[1])) << outcomes[1];
  EXPECT_TRUE(absl::IsAborted(outcomes[0])) << outcomes[0];
  for (const absl::Status& outcome : outcomes)
    EXPECT_THAT(outcome.ToString(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
}

TEST(Nccl, AGpuThatIsLostIsNotTakenForOneWithoutMemory) {
  NcclApi other = NewerHostNccl();
  other.MemAlloc = [](void** memory, size_t bytes) {
    return EndsContext(HostDriver().StreamQuery(CU_STREAM_PER_THREAD))
               ? ncclUnhandledCudaError
               : NewerHostNccl().MemAlloc(memory, bytes);
  };
  const std::vector<absl::Status> outcomes =
      World{.reach = false, .nccl = &other}.Outcomes([&](Rank& rank) -> absl::Status {
        RETURN_IF_ERROR(Between(
            rank, [&] { EndContextAt(1, CUDA_ERROR_ECC_UNCORRECTABLE, 1, "cuMemHostAlloc"); }));
        if (rank.rank() == 1) rank.AllocateWords(8).IgnoreError();
        return rank.Allocate(10000, true).status();
      });
  FailCall(0, CUDA_SUCCESS);
  for (const absl::Status& outcome : outcomes) {
    EXPECT_TRUE(absl::IsDataLoss(outcome)) << outcome;
    EXPECT_THAT(outcome.ToString(),
                AllOf(HasSubstr("ncclMemAlloc: "), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE")));
  }
}

TEST(Nccl, AKernelThatGivesUpEndsThePlansCollectives) {
  const double start = Seconds();
  const std::vector<absl::Status> outcomes = World{.ranks = 2}.Outcomes(
      [](Rank& rank) { return LeaveOthersInAStep(rank, absl::DataLossError("bad page")); });
  EXPECT_LT(Seconds() - start, 20);
  EXPECT_THAT(outcomes[0].ToString(), HasSubstr("bad page"));
}

}  // namespace
}  // namespace coconet
