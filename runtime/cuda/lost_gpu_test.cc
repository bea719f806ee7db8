// Errors of the driver after which a GPU runs nothing more, and those after which it goes on.

#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/testing/host_driver.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/kernels.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status OnTwoGpus(const RankBody& body) {
  SetHostDevices({.count = 2});
  const absl::Status status =
      RunCudaWorldOver({.driver = HostDriver(), .control = ControlOfHostKernels()},
                       {.ranks = 2, .timeout_s = 60}, body);
  FailCall(0, CUDA_SUCCESS);
  return status;
}

struct BoundSum {
  std::unique_ptr<Memory> in, out;
  std::unique_ptr<BoundPlan> plan;
};
absl::StatusOr<BoundSum> BindSum(Rank& rank) {
  BoundSum sum;
  ASSIGN_OR_RETURN(sum.in, rank.Allocate(40, true));
  ASSIGN_OR_RETURN(sum.out, rank.Allocate(40, false));
  Memory* const buffers[] = {sum.in.get(), nullptr, sum.out.get(), nullptr};
  ASSIGN_OR_RETURN(sum.plan, rank.Bind(OneShotSum(rank.mesh(), 10, 1), HandWritten(), buffers, 0));
  return sum;
}

/// Lets `begin` happen while no rank calls the driver.
absl::Status Between(Rank& rank, const std::function<void()>& begin) {
  RETURN_IF_ERROR(rank.exchange().Barrier());
  if (rank.rank() == 0) begin();
  return rank.exchange().Barrier();
}

/// An error that ends a context, with a word of what to do about it.
struct End {
  CUresult result;
  const char* name;
  const char* advice;
};
#define COCONET_END(result, advice) \
  End { result, #result, advice }
const End kEnds[] = {COCONET_END(CUDA_ERROR_DEINITIALIZED, "cudaDeviceReset"),
                     COCONET_END(CUDA_ERROR_ECC_UNCORRECTABLE, "nvidia-smi"),
                     COCONET_END(CUDA_ERROR_NVLINK_UNCORRECTABLE, "nvidia-smi"),
                     COCONET_END(CUDA_ERROR_CONTAINED, "nvidia-smi"),
                     COCONET_END(CUDA_ERROR_ILLEGAL_ADDRESS, "compute-sanitizer"),
                     COCONET_END(CUDA_ERROR_LAUNCH_TIMEOUT, "display"),
                     COCONET_END(CUDA_ERROR_CONTEXT_IS_DESTROYED, "cudaDeviceReset"),
                     COCONET_END(CUDA_ERROR_ASSERT, "compute-sanitizer"),
                     COCONET_END(CUDA_ERROR_HARDWARE_STACK_ERROR, "compute-sanitizer"),
                     COCONET_END(CUDA_ERROR_ILLEGAL_INSTRUCTION, "compute-sanitizer"),
                     COCONET_END(CUDA_ERROR_MISALIGNED_ADDRESS, "compute-sanitizer"),
                     COCONET_END(CUDA_ERROR_INVALID_ADDRESS_SPACE, "compute-sanitizer"),
                     COCONET_END(CUDA_ERROR_INVALID_PC, "compute-sanitizer"),
                     COCONET_END(CUDA_ERROR_LAUNCH_FAILED, "compute-sanitizer"),
                     COCONET_END(CUDA_ERROR_TENSOR_MEMORY_LEAK, "compute-sanitizer"),
                     COCONET_END(CUDA_ERROR_MPS_RPC_FAILURE, "MPS server"),
                     COCONET_END(CUDA_ERROR_MPS_CLIENT_TERMINATED, "MPS server"),
                     COCONET_END(CUDA_ERROR_EXTERNAL_DEVICE, "nvidia-smi")};

class LostGpu : public testing::TestWithParam<End> {};
INSTANTIATE_TEST_SUITE_P(All, LostGpu, testing::ValuesIn(kEnds),
                         [](const auto& info) { return std::string(info.param.name); });

/// Two runs of a plan, during the first of which GPU 1 is lost at a call.
struct Runs {
  absl::Status first, second;
};
std::vector<Runs> LoseGpuInARun(const End& end, const char* call) {
  std::vector<Runs> runs(2);
  const absl::Status world = OnTwoGpus([&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const BoundSum sum, BindSum(rank));
    RETURN_IF_ERROR(sum.plan->Run());
    RETURN_IF_ERROR(Between(rank, [&] { EndContextAt(1, end.result, 1, call); }));
    Runs& mine = runs[rank.rank()];
    mine.first = sum.plan->Run();
    // Where GPU 1 is lost after its kernel, that of GPU 0 may have ended well.
    if (rank.rank() == 0 && mine.first.ok()) mine.first = sum.plan->Run();
    mine.second = sum.plan->Run();
    return absl::OkStatus();
  });
  EXPECT_EQ(world, absl::OkStatus());
  return runs;
}

TEST_P(LostGpu, EndsTheRunsOfAllRanksWithItsName) {
  for (const char* call : {"cuLaunchKernelEx", "cuStreamQuery"}) {
    const std::vector<Runs> runs = LoseGpuInARun(GetParam(), call);
    EXPECT_TRUE(absl::IsDataLoss(runs[1].first)) << runs[1].first;
    EXPECT_THAT(std::string(runs[1].first.message()),
                AllOf(HasSubstr("GPU 1: step 0 "), HasSubstr(" on rank 1: "), HasSubstr(call),
                      HasSubstr(GetParam().name), HasSubstr(GetParam().advice)));
    EXPECT_TRUE(absl::IsAborted(runs[0].first)) << runs[0].first;
    EXPECT_THAT(std::string(runs[0].first.message()),
                AllOf(HasSubstr("rank 1 gave up: GPU 1: step 0 "), HasSubstr(GetParam().name)));
    for (const Runs& of_rank : runs) EXPECT_EQ(of_rank.second, of_rank.first);
  }
}

TEST_P(LostGpu, FailsAllLaterCallsWithItsName) {
  const absl::Status world = OnTwoGpus([&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const BoundSum sum, BindSum(rank));
    ASSIGN_OR_RETURN(const BoundSum other, BindSum(rank));
    CUstream stream = nullptr;
    RETURN_IF_CU(HostDriver(), StreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
    RETURN_IF_ERROR(Between(rank, [] { EndContextAt(1, GetParam().result, 1, "cuMemHostAlloc"); }));
    const absl::Cleanup destroy = [stream] { HostDriver().StreamDestroy(stream); };
    std::vector<absl::Status> all;
    if (rank.rank() == 1) {
      all = {rank.AllocateWords(8).status(),
             rank.Allocate(8, false).status(),
             rank.Load("/proc/self/exe").status(),
             sum.in->Write(0, 4, "abc"),
             sum.plan->Run(),
             other.plan->Enqueue(stream),
             other.plan->Run(),
             other.plan->Capture(2).status()};
    }
    RETURN_IF_ERROR(rank.exchange().Barrier());
    Memory* const buffers[] = {sum.in.get(), nullptr, sum.out.get(), nullptr};
    all.push_back(rank.Allocate(8, true).status());
    all.push_back(rank.Bind(OneShotSum(rank.mesh(), 10, 1), HandWritten(), buffers, 0).status());
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_TRUE(absl::IsDataLoss(all[i])) << i << ": " << all[i];
      EXPECT_THAT(std::string(all[i].message()), HasSubstr(GetParam().name)) << i;
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(world, absl::OkStatus());
}

TEST_P(LostGpu, IsTheCauseOfWhatLibrariesReport) {
  SetHostDevices({.count = 1});
  const std::shared_ptr<Device> device = Device::Open(HostDriver(), 0).value();
  const absl::StatusOr<InContext> in = device->Enter();
  const absl::Status failed = absl::InternalError("cublasLtMatmul: execution failed");
  EXPECT_EQ(CauseOf(HostDriver(), failed), failed);
  EndContextAt(1, GetParam().result, 0, "cuStreamQuery");
  EXPECT_EQ(CauseOf(HostDriver(), absl::OkStatus()), absl::OkStatus());
  const absl::Status cause = CauseOf(HostDriver(), failed);
  EXPECT_TRUE(absl::IsDataLoss(cause)) << cause;
  EXPECT_THAT(std::string(cause.message()),
              AllOf(HasSubstr("cublasLtMatmul: execution failed: "), HasSubstr(GetParam().name)));
  FailCall(0, CUDA_SUCCESS);
}

TEST(UsableGpu, RunsOtherPlansAfterAnErrorOfOne) {
  for (CUresult result : {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY,
                          CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_UNKNOWN}) {
    const absl::Status world = OnTwoGpus([&](Rank& rank) -> absl::Status {
      {
        ASSIGN_OR_RETURN(const BoundSum sum, BindSum(rank));
        RETURN_IF_ERROR(Between(rank, [&] { FailCall(1, result, "cuLaunchKernelEx"); }));
        const absl::Status failed = sum.plan->Run();
        EXPECT_FALSE(failed.ok());
        EXPECT_FALSE(absl::IsDataLoss(failed)) << failed;
        RETURN_IF_ERROR(rank.exchange().Barrier());
      }
      return CheckPlans(rank);
    });
    EXPECT_EQ(world, absl::OkStatus()) << result;
  }
}

}  // namespace
}  // namespace coconet
