#include "runtime/cuda/cuda_world.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/links.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/kernels.h"
#include "runtime/testing/lane_checks.h"
#include "runtime/testing/send_checks.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kTimeout = 60;

using Check = absl::Status (*)(Rank&);
struct Case {
  const char* name;
  Check check;
  int ranks, devices;
  WorldShape shape = {};
};

absl::Status OnHost(int ranks, const WorldShape& shape, double timeout_s, const RankBody& body) {
  return RunCudaWorldOver({.driver = HostDriver(),
                           .open_cublaslt = OpenHostCublasLt,
                           .control = ControlOfHostKernels()},
                          {ranks, shape, timeout_s}, body);
}

class CudaWorldOnHost : public testing::TestWithParam<Case> {};

TEST_P(CudaWorldOnHost, Does) {
  const Case& c = GetParam();
  SetHostDevices({.count = c.devices});
  EXPECT_EQ(OnHost(c.ranks, c.shape, kTimeout, c.check), absl::OkStatus());
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  const auto add = [&](int ranks, int devices, const WorldShape& shape) {
    cases.push_back({"Exchange", CheckExchange, ranks, devices, shape});
    cases.push_back({"CollectiveSteps", CheckCollectiveSteps, ranks, devices, shape});
    cases.push_back({"Memory", CheckMemory, ranks, devices, shape});
    cases.push_back({"Plans", CheckPlans, ranks, devices, shape});
    cases.push_back({"SyncGuards", CheckSyncGuardsOfPlans, ranks, devices, shape});
    cases.push_back({"MatrixProducts", CheckMatrixProducts, ranks, devices, shape});
    cases.push_back({"ProductsOnBothLanes", CheckProductsOnBothLanes, ranks, devices, shape});
    cases.push_back({"SendsInKernels", CheckSendsInKernels, ranks, devices, shape});
    cases.push_back({"OrderOfLanes", CheckOrderOfLanes, ranks, devices, shape});
    cases.push_back({"BindErrors", CheckBindErrors, ranks, devices, shape});
  };
  for (int ranks : {1, 2, 3, 4, 8}) add(ranks, 1, {});
  add(4, 2, {});
  add(4, 8, {});
  add(4, 1, {.stages = 1, .nodes = 2});
  add(6, 2, {.stages = 3, .nodes = 0});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, CudaWorldOnHost, testing::ValuesIn(AllCases()), [](const auto& info) {
  const Case& c = info.param;
  return absl::StrCat(c.name, c.ranks, "on", c.devices, "x", c.shape.stages, "x", c.shape.nodes);
});

/// The status of every rank's `body`.
std::vector<std::string> Outcomes(int ranks, double timeout_s, const RankBody& body) {
  SetHostDevices({});
  std::vector<std::string> outcomes(ranks);
  OnHost(ranks, {}, timeout_s, [&](Rank& rank) {
    const absl::Status status = body(rank);
    outcomes[rank.rank()] = status.ToString();
    return status;
  }).IgnoreError();
  return outcomes;
}

TEST(CudaWorld, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  SetHostDevices({});
  EXPECT_EQ(OnHost(3, {}, kTimeout, [](Rank& rank) { return CheckDeadline(rank, 0.2); }),
            absl::OkStatus());
  EXPECT_EQ(OnHost(4, {.nodes = 2}, kTimeout, [](Rank& rank) { return CheckDeadline(rank, 0.2); }),
            absl::OkStatus());
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TEST(CudaWorld, ARankThatLeavesEndsTheWaitsOfKernels) {
  const double start = Seconds();
  const std::vector<std::string> outcomes = Outcomes(3, kTimeout, [](Rank& rank) {
    return LeaveOthersInAStep(rank, absl::DataLossError("bad page"));
  });
  for (int rank : {0, 1}) {
    EXPECT_THAT(outcomes[rank],
                AllOf(HasSubstr("step 0"), HasSubstr(absl::StrCat("on rank ", rank)),
                      HasSubstr("bad page")));
  }
  EXPECT_LT(Seconds() - start, 20)
      << "the last rank frees its plan while kernels of others wait for it";
}

/// Rank 0 frees memory while a kernel of rank 1, on the same GPU, waits for it.
TEST(CudaWorld, MemoryIsFreedWithoutWaitingForKernelsThatWaitForThisRank) {
  SetHostDevices({.count = 1, .memory_bytes = int64_t{64} << 20});
  const double start = Seconds();
  const absl::Status status = OnHost(2, {}, 20, [](Rank& rank) -> absl::Status {
    const Plan plan = OneShotSum(rank.mesh(), 10, 1);
    ASSIGN_OR_RETURN(const std::unique_ptr<Memory> in, rank.Allocate(40, true));
    ASSIGN_OR_RETURN(const std::unique_ptr<Memory> out, rank.Allocate(40, false));
    Memory* const buffers[] = {in.get(), nullptr, out.get(), nullptr};
    ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> bound,
                     rank.Bind(plan, HandWritten(), buffers, 0));
    ASSIGN_OR_RETURN(std::unique_ptr<BoundPlan> other, rank.Bind(plan, HandWritten(), buffers, 0));
    ASSIGN_OR_RETURN(std::unique_ptr<Memory> memory, rank.Allocate(int64_t{30} << 20, false));
    ASSIGN_OR_RETURN(std::unique_ptr<Memory> words, rank.AllocateWords(8));
    if (rank.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // rank 1's kernel begins
      memory = nullptr;
      words = nullptr;
      other = nullptr;
    }
    RETURN_IF_ERROR(bound->Run());
    return rank.exchange().Barrier();
  });
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_LT(Seconds() - start, 10);
}

TEST(CudaWorld, WhatIsFreedIsThereAgain) {
  SetHostDevices({.count = 1, .memory_bytes = int64_t{64} << 20});
  const absl::Status status = OnHost(1, {}, kTimeout, [](Rank& rank) -> absl::Status {
    for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(rank.Allocate(int64_t{40} << 20, i == 1).status());
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST(CudaWorld, RefusesBlocksThatAreNotResidentTogether) {
  SetHostDevices({.count = 1, .multiprocessors = 1});
  const absl::Status status = OnHost(4, {}, kTimeout, CheckPlans);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("want at most 2 blocks"),
                    HasSubstr("of each of 4 ranks, which wait for each other")));
}

/// Binds a plan of a product and a kernel whose blocks wait for those of other ranks.
absl::Status BindSumAndProduct(Rank& rank, int blocks) {
  Plan plan = OneShotSum(rank.mesh(), 10, blocks);
  for (const char* name : {"a", "b", "c"})
    plan.buffers.push_back({name, BufferRole::kTemp, DType::kF32, 16, false});
  GemmStep product{.dtype = DType::kF32, .m = {4}, .n = {4}, .k = {4}, .label = "MM"};
  product.a = {.buffer = 4, .ld = 4}, product.b = {.buffer = 5, .ld = 4},
  product.c = {.buffer = 6, .ld = 4};
  plan.steps.emplace_back(product);
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<Memory*> buffers;
  for (const Buffer& buffer : plan.buffers) {
    const bool sync = buffer.role == BufferRole::kSync;
    if (!sync) {
      ASSIGN_OR_RETURN(memory.emplace_back(), rank.Allocate(buffer.elements * 4, buffer.symmetric));
    }
    buffers.push_back(sync ? nullptr : memory.back().get());
  }
  return rank.Bind(plan, HandWritten(), buffers, 0).status();
}

TEST(CudaWorld, RefusesKernelsThatLeaveNoRoomToProducts) {
  SetHostDevices({.count = 1, .multiprocessors = 8});
  const auto bind = [](int ranks, int blocks) {
    return OnHost(ranks, {}, kTimeout, [&](Rank& rank) { return BindSumAndProduct(rank, blocks); });
  };
  EXPECT_EQ(bind(4, 2), absl::OkStatus());
  EXPECT_EQ(bind(1, 16), absl::OkStatus());
  const absl::Status status = bind(4, 3);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("want at most 7 blocks of all ranks but one on the 8 multiprocessors of "
                        "GPU 0, the rest for matrix products, have 3 of each of 4 ranks"));
}

TEST(CudaWorld, SaysThatThereIsNoLibraryToMultiplyWith) {
  SetHostDevices({});
  const auto none = []() -> absl::StatusOr<const CublasLtApi*> {
    return absl::UnavailableError("no cuBLASLt here");
  };
  const auto run = [&](Check check) {
    return RunCudaWorldOver(
        {.driver = HostDriver(), .open_cublaslt = none, .control = ControlOfHostKernels()},
        {.ranks = 2}, check);
  };
  EXPECT_EQ(run(CheckPlans), absl::OkStatus());
  const absl::Status status = run(CheckMatrixProducts);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no cuBLASLt here"));
}

TEST(CudaWorld, RefusesGpusThatDoNotReachEachOther) {
  SetHostDevices({.count = 2, .reach_each_other = false});
  const absl::Status status = OnHost(2, {}, kTimeout, CheckMemory);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not reach the memory of GPU"));
}

TEST(CudaWorld, SaysWhichDriverAndWhichLibrariesThereAre) {
  SetHostDevices({.count = 2, .driver = 12080});
  EXPECT_EQ(OnHost(2, {}, kTimeout,
                   [](Rank& rank) {
                     EXPECT_EQ(rank.topology().driver, 12080);
                     const int v = CUBLAS_VERSION;
                     EXPECT_EQ(rank.Products(), absl::StrCat("cublaslt ", v / 10000, ".",
                                                             v / 100 % 100, ".", v % 100));
                     return absl::OkStatus();
                   }),
            absl::OkStatus());
}

/// Topology::links of each rank, which all are told alike.
std::string LinksOf(int ranks, const HostDevices& devices) {
  SetHostDevices(devices);
  std::vector<std::string> links(ranks);
  EXPECT_EQ(OnHost(ranks, {}, kTimeout,
                   [&](Rank& rank) {
                     links[rank.rank()] = rank.topology().links;
                     EXPECT_EQ(rank.topology().gpu_memory_bytes, devices.memory_bytes);
                     EXPECT_GT(rank.topology().memory_bytes, int64_t{64} << 20);
                     return absl::OkStatus();
                   }),
            absl::OkStatus());
  for (const std::string& of_rank : links) EXPECT_EQ(of_rank, links[0]);
  return links[0];
}

TEST(CudaWorld, SaysHowItsGpusAreLinked) {
  EXPECT_EQ(LinksOf(1, {.count = 2}), "");
  EXPECT_EQ(LinksOf(3, {.count = 3}), "all atomic");
  EXPECT_EQ(LinksOf(2, {.count = 1}), "all same");
  EXPECT_EQ(LinksOf(3, {.count = 2, .memory_bytes = int64_t{1} << 26}),
            "- atomic same; atomic - atomic; same atomic -");
  const auto of_pairs = [](CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to) {
    const bool pair = from / 2 == to / 2;
    return attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED ? pair ? 1 : 0
           : attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK      ? pair ? 0 : 1
                                                                        : 1;
  };
  EXPECT_EQ(LinksOf(4, {.count = 4, .link = of_pairs}),
            "- atomic plain:1 plain:1; atomic - plain:1 plain:1; plain:1 plain:1 - atomic; "
            "plain:1 plain:1 atomic -");
}

TEST(CudaWorld, SaysWhichLinksAProcessDoesNotSee) {
  const Links links = {{"b", "none"}, {"c", "plain:2"}};
  const SeenLinks a = ReadLetter(LetterOf("a", links)), d = ReadLetter(LetterOf("d", {}));
  EXPECT_EQ(a.uuid, "a");
  EXPECT_EQ(a.links, links);
  EXPECT_EQ(LinksText({a, {"c", {}}, d}), "- plain:2 unseen; unseen - unseen; unseen unseen -");
  EXPECT_EQ(LinksText({d, {"e", {}}}), "all unseen");
}

TEST(CudaWorld, SaysThatThereIsNoGpu) {
  SetHostDevices({.count = 0});
  const absl::Status status = OnHost(2, {}, kTimeout, CheckMemory);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("want one of the 0 that are visible"));
}

/// Fails each driver call of a world in turn. Returns the number of calls; `untold` counts those
/// whose failure no rank reported.
int FailEachCall(int ranks, int& untold) {
  SetHostDevices({.count = 2});
  for (int call = 1;; ++call) {
    FailCall(call, CUDA_ERROR_UNKNOWN);
    const absl::Status status =
        OnHost(ranks, {}, kTimeout, [](Rank& rank) { return RunSteps(rank, 2, [](int) {}); });
    const std::string failed = FailedCall();
    FailCall(0, CUDA_SUCCESS);
    if (failed.empty()) {
      EXPECT_EQ(status, absl::OkStatus());
      return call - 1;
    }
    // In the destructor of a plan, or of memory on the other rank's GPU.
    if (status.ok() && (failed == "cuStreamSynchronize" || failed == "cuCtxPushCurrent")) {
      ++untold;
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << failed;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr(failed), HasSubstr("CUDA_ERROR_OF_A_TEST (999): what a driver says")));
  }
}

TEST(CudaWorld, EachCallThatFailsBecomesAnErrorThatNamesIt) {
  int untold = 0;
  EXPECT_GT(FailEachCall(1, untold), 30);
  EXPECT_EQ(untold, kLanes);
  EXPECT_GT(FailEachCall(2, untold), 60);  // their order differs between runs
}

TEST(CudaWorld, EachCallOfTheLibraryThatFailsBecomesAnErrorThatNamesIt) {
  SetHostDevices({});
  for (int ranks : {1, 2}) {
    int calls = 0;
    for (int call = 1;; ++call) {
      FailCublasLtCall(call, CUBLAS_STATUS_EXECUTION_FAILED);
      const absl::Status status = OnHost(ranks, {}, kTimeout, CheckMatrixProducts);
      const std::string failed = FailedCublasLtCall();
      FailCublasLtCall(0, CUBLAS_STATUS_SUCCESS);
      if (failed.empty()) {
        EXPECT_EQ(status, absl::OkStatus());
        break;
      }
      ++calls;
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << failed;
      EXPECT_THAT(
          std::string(status.message()),
          AllOf(HasSubstr(failed), HasSubstr("CUBLAS_STATUS_OF_A_TEST (13): what a library says")));
    }
    EXPECT_GT(calls, 40 * ranks);
  }
}

TEST(CudaWorld, RunsOrSaysWhatIsMissing) {
  const absl::Status status = RunCudaWorld({.ranks = 2}, CheckExchange);
  if (absl::IsUnavailable(status)) GTEST_SKIP() << status.message();
  EXPECT_EQ(status, absl::OkStatus());
}

}  // namespace
}  // namespace coconet
