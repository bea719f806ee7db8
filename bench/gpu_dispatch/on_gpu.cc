// What a dispatch costs the host on this machine's GPU, beside the driver alone.

#include "bench/gpu_dispatch/gpu_dispatch.h"
#include "bench/harness/user.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "runtime/cuda/driver/driver_api.h"

namespace coconet::bench {
namespace {

absl::Status RunOnGpu() {
  ASSIGN_OR_RETURN(const DriverApi* driver, OpenDriver());
  return RunGpuDispatch({.driver = *driver, .green_contexts = GetEnv().green_contexts},
                        /*judged=*/!IsQuick());
}

const Registered kBenchmark({.name = "gpu_dispatch",
                             .purpose = "measures what a dispatch costs the host",
                             .heeds = {"quick"},
                             .positive = {"ranks"},
                             .run = RunOnGpu});

}  // namespace
}  // namespace coconet::bench
