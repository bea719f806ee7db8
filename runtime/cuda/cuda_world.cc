#include "runtime/cuda/cuda_world.h"

#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/nccl/nccl_libraries.h"

namespace coconet {

absl::Status RunCudaWorld(const WorldRequest& request, const RankBody& body) {
  ASSIGN_OR_RETURN(const DriverApi* driver, OpenDriver());
  return RunCudaWorldOver({.driver = *driver,
                           .open_libraries = OpenNcclLibraries,
                           .green_contexts = GetEnv().green_contexts,
                           .multicast = GetEnv().multicast},
                          request, body);
}

MakeRank LaunchedCudaRanks() {
  const absl::StatusOr<const DriverApi*> driver = OpenDriver();
  if (!driver.ok()) {
    return
        [why = driver.status()](const RankPlace& place) -> absl::StatusOr<std::unique_ptr<Rank>> {
          return place.exchange->Agree(why);
        };
  }
  return LaunchedCudaRanksOver({.driver = **driver,
                                .open_libraries = OpenNcclLibraries,
                                .on_shared_gpus = GetEnv().nccl_shared_gpu,
                                .multicast = GetEnv().multicast});
}

}  // namespace coconet
