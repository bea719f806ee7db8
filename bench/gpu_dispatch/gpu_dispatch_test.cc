#include "bench/gpu_dispatch/gpu_dispatch.h"

#include <string>
#include <vector>

#include "bench/gpu_dispatch/driver_recorder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cuda/testing/host_context.h"
#include "runtime/cuda/testing/host_driver.h"

namespace coconet::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

CudaLibraries Fakes() { return {.driver = HostDriver(), .control = ControlOfHostKernels()}; }

TEST(GpuDispatch, BothSidesMakeTheCallsThatADispatchNeedsAndDoItsSteps) {
  SetHostDevices({.multiprocessors = 132});
  for (int ranks : {1, 2}) {
    const auto rows =
        MeasureGpuDispatch(Fakes(), ranks, {.min_rounds = 3, .max_rounds = 3, .steps = 4});
    ASSERT_TRUE(rows.ok()) << rows.status();
    std::vector<std::pair<std::string, int>> calls;
    for (const Row& row : *rows) {
      EXPECT_GT(row.Number("ours_us"), 0);
      EXPECT_GT(row.Number("floor_us"), 0);
      EXPECT_GT(row.Number("over_floor"), 0);
      calls.emplace_back(TextOf(row, "way"), static_cast<int>(row.Number("calls")));
    }
    EXPECT_THAT(calls, ElementsAre(Pair("Run", 3), Pair("Enqueue", ranks == 1 ? 4 : 7),
                                   Pair("Enqueue in the rank's stream", 3), Pair("graph: Run", 3),
                                   Pair("graph: Enqueue", 4),
                                   Pair("graph: Enqueue in the rank's stream", 3)));
    EXPECT_EQ(TextOf(rows->front(), "sequence"),
              "cuCtxGetCurrent, cuLaunchKernelEx, cuStreamQuery");
  }
}

TEST(GpuDispatch, TheFloorMakesTheRecordedCalls) {
  SetHostDevices({});
  const DriverApi& driver = Recorded(HostDriver());
  CUcontext context = ContextOf(CUdevice{0});
  const auto body = [&] {
    CUcontext current = nullptr;
    driver.CtxGetCurrent(&current);
    driver.CtxPushCurrent(context);
    driver.CtxPopCurrent(&current);
    driver.CtxGetCurrent(&current);
    driver.CtxGetCurrent(&current);
    return absl::OkStatus();
  };
  const auto calls = Record(body);
  ASSERT_TRUE(calls.ok()) << calls.status();
  EXPECT_EQ(Words(*calls),
            "cuCtxGetCurrent, cuCtxPushCurrent, cuCtxPopCurrent, 2 x cuCtxGetCurrent");
  EXPECT_EQ(HostCallsOf([&] { EXPECT_EQ(Repeat(HostDriver(), *calls), absl::OkStatus()); }),
            HostCallsOf([&] { EXPECT_EQ(body(), absl::OkStatus()); }));
}

TEST(GpuDispatch, ACallThatTheFloorCannotMakeIsNamed) {
  const DriverApi& driver = Recorded(HostDriver());
  int count = 0;
  EXPECT_EQ(
      Record([&] { return driver.DeviceGetCount(&count), absl::OkStatus(); }).status(),
      absl::UnimplementedError("a dispatch called cuDeviceGetCount, which Repeat does not know"));
  EXPECT_EQ(count, 1);
}

TEST(GpuDispatch, AFailureOfTheFloorIsNamed) {
  const std::vector<DriverCall> calls = {
      {"cuCtxPushCurrent", [](const DriverApi& driver) { return driver.CtxPushCurrent(nullptr); }}};
  FailCall(1, CUDA_ERROR_UNKNOWN, "cuCtxPushCurrent");
  EXPECT_THAT(std::string(Repeat(HostDriver(), calls).message()),
              testing::StartsWith("cuCtxPushCurrent: "));
  FailCall(0, CUDA_SUCCESS);
}

}  // namespace
}  // namespace coconet::bench
