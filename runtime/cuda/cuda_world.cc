#include "runtime/cuda/cuda_world.h"

#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/nccl/nccl_libraries.h"

namespace coconet {

absl::Status RunCudaWorld(int ranks, const WorldShape& shape, double timeout_s, bool pin,
                          const std::function<absl::Status(Rank&)>& body) {
  ASSIGN_OR_RETURN(const DriverApi* driver, OpenDriver());
  return RunCudaWorldOver({.driver = *driver,
                           .open_libraries = OpenNcclLibraries,
                           .green_contexts = GetEnv().green_contexts,
                           .multicast = GetEnv().multicast},
                          {}, ranks, shape, timeout_s, pin, body);
}

absl::Status RunCudaMpiWorld(const WorldShape& shape, double timeout_s, bool pin,
                             const std::function<absl::Status(Rank&)>& body) {
  const absl::StatusOr<const DriverApi*> driver = OpenDriver();
  if (!driver.ok()) return RefuseCudaMpiWorld(driver.status(), shape, timeout_s);
  return RunCudaMpiWorldOver(
      {.driver = **driver, .open_libraries = OpenNcclLibraries, .multicast = GetEnv().multicast},
      {}, shape, timeout_s, pin, body);
}

}  // namespace coconet
