// Dynamic shared memory of blocks: what binding allows and refuses, and what launches ask for.

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_cublaslt.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/testing/kernels.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kKiB = 1 << 10;

/// What launches asked for.
struct Launches {
  std::mutex mutex;
  std::vector<unsigned> shared_bytes;
};
Launches& TheLaunches() {
  static auto* launches = new Launches;
  return *launches;
}

/// The fake driver, with a note of each launch.
const DriverApi& NotingDriver() {
  static const DriverApi* driver = [] {
    auto* made = new DriverApi(HostDriver());
    made->LaunchKernelEx = [](const CUlaunchConfig* config, CUfunction function, void** params,
                              void** extra) {
      {
        const std::lock_guard<std::mutex> lock(TheLaunches().mutex);
        TheLaunches().shared_bytes.push_back(config->sharedMemBytes);
      }
      return HostDriver().LaunchKernelEx(config, function, params, extra);
    };
    return made;
  }();
  return *driver;
}

absl::Status OnHost(int ranks, const RankBody& body) {
  return RunCudaWorldOver({.driver = NotingDriver(),
                           .open_cublaslt = OpenHostCublasLt,
                           .control = ControlOfHostKernels()},
                          {.ranks = ranks}, body);
}

/// A plan of kernels that do nothing, one for each of `shared_bytes`.
absl::StatusOr<std::unique_ptr<BoundPlan>> BindNothing(Rank& rank,
                                                       const std::vector<int64_t>& shared_bytes) {
  Plan plan = {.ranks = rank.size(), .buffers = {}, .steps = {}};
  for (int64_t bytes : shared_bytes) {
    KernelStep step{.symbol = "nothing", .args = {}, .label = "tiles"};
    step.shared_bytes = bytes;
    plan.steps.push_back(step);
  }
  return rank.Bind(plan, HandWritten(), {}, 0);
}

TEST(SharedMemory, IsWhatThePlanSaysInLaunchesAndInGraphs) {
  SetHostDevices({});
  const absl::Status status = OnHost(1, [](Rank& rank) -> absl::Status {
    TheLaunches().shared_bytes.clear();
    ASSIGN_OR_RETURN(const auto plan, BindNothing(rank, {100 * kKiB, 0, 227 * kKiB}));
    RETURN_IF_ERROR(plan->Run());
    EXPECT_THAT(TheLaunches().shared_bytes, testing::ElementsAre(100 * kKiB, 0, 227 * kKiB));
    TheLaunches().shared_bytes.clear();
    ASSIGN_OR_RETURN(const auto graph, plan->Capture(2));
    EXPECT_THAT(TheLaunches().shared_bytes,
                testing::ElementsAre(100 * kKiB, 0, 227 * kKiB, 100 * kKiB, 0, 227 * kKiB));
    return graph->RunSteps(3);
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST(SharedMemory, IsAskedForOnlyWhereThereIsNotEnoughWithout) {
  SetHostDevices({.declared_shared_bytes = 8 << 10});
  const auto calls = [](Rank& rank, int64_t bytes) {
    return HostCallsOf([&] {
      EXPECT_EQ(BindNothing(rank, {bytes}).status(), absl::OkStatus());
    })["cuFuncSetAttribute"];
  };
  const absl::Status status = OnHost(1, [&](Rank& rank) {
    EXPECT_EQ(calls(rank, 0), 0);
    EXPECT_EQ(calls(rank, 40 * kKiB), 0);
    EXPECT_EQ(calls(rank, 41 * kKiB), 1) << "with 8 KiB that the kernel declares";
    EXPECT_EQ(calls(rank, 40 * kKiB), 0);
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST(SharedMemory, OfAPlanRemainsWhenAnotherWithLessIsBound) {
  SetHostDevices({});
  const absl::Status status = OnHost(1, [](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const auto more, BindNothing(rank, {200 * kKiB}));
    ASSIGN_OR_RETURN(const auto less, BindNothing(rank, {100 * kKiB}));
    RETURN_IF_ERROR(less->Run());
    return more->Run();
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST(SharedMemory, BeyondWhatABlockMayHaveIsRefusedInWords) {
  SetHostDevices({.shared_bytes_per_block = 163 << 10, .declared_shared_bytes = 1 << 10});
  const auto bind = [](int64_t bytes) {
    return OnHost(1, [&](Rank& rank) { return BindNothing(rank, {0, bytes}).status(); });
  };
  EXPECT_EQ(bind(162 * kKiB), absl::OkStatus());
  const absl::Status status = bind(162 * kKiB + 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "rank 0: Bind: tiles: want at most 166912 bytes of shared memory for a block on GPU 0, "
            "have 165889 beside 1024 in arrays of the kernel's text; take a variant whose tiles "
            "are smaller or have fewer stages");
  EXPECT_EQ(bind(int64_t{1} << 40).code(), absl::StatusCode::kResourceExhausted);
}

TEST(SharedMemory, LeavesFewerBlocksResidentTogether) {
  SetHostDevices({.count = 1, .multiprocessors = 1});
  const auto bind = [](int64_t bytes) {
    return OnHost(1, [&](Rank& rank) -> absl::Status {
      ASSIGN_OR_RETURN(const auto in, rank.Allocate(40, true));
      ASSIGN_OR_RETURN(const auto out, rank.Allocate(40, false));
      Memory* const buffers[] = {in.get(), nullptr, out.get(), nullptr};
      Plan plan = OneShotSum(rank.mesh(), 10, /*blocks=*/2);
      std::get<KernelStep>(plan.steps[0]).shared_bytes = bytes;
      return rank.Bind(plan, HandWritten(), buffers, 0).status();
    });
  };
  EXPECT_EQ(bind(113 * kKiB), absl::OkStatus());
  const absl::Status status = bind(114 * kKiB);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("want at most 1 blocks of 1 threads at once on GPU 0"),
                    HasSubstr("have 2 of each of 1 ranks")));
}

TEST(SharedMemory, OfALaunchWithoutTheAttributeIsRefusedByTheDriver) {
  SetHostDevices({});
  const auto launch = [](CUfunction function, unsigned bytes) {
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = bytes;
    void* params[] = {nullptr};
    return HostDriver().LaunchKernelEx(&config, function, params, nullptr);
  };
  const absl::Status status = OnHost(1, [&](Rank&) -> absl::Status {
    ASSIGN_OR_RETURN(void* symbol, HandWritten().Symbol("nothing"));
    const auto function = static_cast<CUfunction>(symbol);
    CUcontext context = nullptr;
    HostDriver().DevicePrimaryCtxRetain(&context, 0);
    HostDriver().CtxPushCurrent(context);
    const auto allow = [&](int bytes) {
      return HostDriver().FuncSetAttribute(function,
                                           CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
    };
    EXPECT_EQ(launch(function, 48 * kKiB), CUDA_SUCCESS);
    EXPECT_EQ(launch(function, 48 * kKiB + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(allow(227 * kKiB + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(allow(49 * kKiB), CUDA_SUCCESS);
    EXPECT_EQ(launch(function, 49 * kKiB), CUDA_SUCCESS);
    EXPECT_EQ(launch(function, 49 * kKiB + 1), CUDA_ERROR_INVALID_VALUE);
    HostDriver().CtxPopCurrent(&context);
    HostDriver().DevicePrimaryCtxRelease(0);
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST(SharedMemory, EachCallThatFailsBecomesAnErrorThatNamesIt) {
  for (const char* call : {"cuFuncGetAttribute", "cuFuncSetAttribute"}) {
    int failures = 0;
    for (int number = 1;; ++number) {
      SetHostDevices({});
      FailCall(number, CUDA_ERROR_UNKNOWN, call);
      const absl::Status status =
          OnHost(1, [](Rank& rank) { return BindNothing(rank, {100 * kKiB}).status(); });
      const bool failed = !FailedCall().empty();
      FailCall(0, CUDA_SUCCESS);
      if (!failed) {
        EXPECT_EQ(status, absl::OkStatus());
        break;
      }
      ++failures;
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
      EXPECT_THAT(std::string(status.message()), HasSubstr(call));
    }
    EXPECT_GT(failures, 0) << call;
  }
}

}  // namespace
}  // namespace coconet
