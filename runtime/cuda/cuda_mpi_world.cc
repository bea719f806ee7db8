#include <memory>
#include <utility>

#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/mpi/mpi_world.h"

namespace coconet {

absl::Status RunCudaMpiWorldOver(const CudaLibraries& libraries, const Control& control, const WorldShape& shape, double timeout_s, bool pin,
                                 const std::function<absl::Status(Rank&)>& body) {
  const auto make = [&](RankPlace place) -> absl::StatusOr<std::unique_ptr<Rank>> {
    int count = 0;
    RETURN_IF_CU(libraries.driver, DeviceGetCount, &count);
    absl::StatusOr<std::shared_ptr<Device>> device = Device::Open(libraries.driver, count == 0 ? 0 : place.machine_rank % count);
    RETURN_IF_ERROR(place.exchange->Agree(device.status()));
    auto sharing = std::make_unique<ProcessGpuSharing>(*place.exchange, place.rank, SharingMemory(place.mesh, place.rank));
    return MakeCudaRank(libraries, control, std::move(place), *std::move(device), std::move(sharing), {.why_none = "they are processes"});
  };
  return RunOnMpi(shape, timeout_s, pin, make, body);
}

}  // namespace coconet
