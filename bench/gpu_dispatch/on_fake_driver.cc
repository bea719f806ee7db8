// The same without a GPU, over the driver of tests: calls are those of a GPU, and times are what
// our code takes beside a driver that does next to nothing.

#include "bench/gpu_dispatch/gpu_dispatch.h"
#include "bench/harness/user.h"
#include "runtime/cuda/testing/host_driver.h"

namespace coconet::bench {
namespace {

absl::Status RunOnFake() {
  SetHostDevices({.multiprocessors = 132});
  return RunGpuDispatch({.driver = HostDriver(), .control = ControlOfHostKernels()},
                        /*judged=*/false);
}

const Registered kBenchmark(
    {.name = "fake_driver",
     .purpose = "measures what a dispatch costs the host beside the driver of tests",
     .heeds = {"quick"},
     .positive = {"ranks"},
     .run = RunOnFake});

}  // namespace
}  // namespace coconet::bench
