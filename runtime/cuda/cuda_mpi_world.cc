#include <memory>
#include <utility>
#include <vector>

#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/mpi/mpi_world.h"

namespace coconet {
namespace {

/// Opens one of the GPUs that this process sees, in turns by `machine_rank`.
absl::StatusOr<std::shared_ptr<Device>> OpenInTurn(const DriverApi& driver, int machine_rank) {
  int count = 0;
  RETURN_IF_CU(driver, DeviceGetCount, &count);
  return Device::Open(driver, count == 0 ? 0 : machine_rank % count);
}

}  // namespace

absl::Status RefuseCudaMpiWorld(const absl::Status& why, const WorldShape& shape,
                                double timeout_s) {
  // Called where the ranks agree on their GPUs.
  const auto refuse = [&](RankPlace place) -> absl::StatusOr<std::unique_ptr<Rank>> {
    return place.exchange->Agree(why);
  };
  return RunOnMpi(shape, timeout_s, /*pin=*/false, refuse, [](Rank&) { return absl::OkStatus(); });
}

absl::Status RunCudaMpiWorldOver(const CudaLibraries& libraries, const Control& control,
                                 const WorldShape& shape, double timeout_s, bool pin,
                                 const std::function<absl::Status(Rank&)>& body) {
  const auto make = [&](RankPlace place) -> absl::StatusOr<std::unique_ptr<Rank>> {
    absl::StatusOr<std::shared_ptr<Device>> device =
        OpenInTurn(libraries.driver, place.machine_rank);
    RETURN_IF_ERROR(place.exchange->Agree(device.status()));
    auto sharing = std::make_unique<ProcessGpuSharing>(*place.exchange, place.rank,
                                                       SharingMemory(place.mesh, place.rank));
    // Half of the time, because a rank that fails then waits for the others in the exchange, which
    // also has a deadline.
    std::vector<std::shared_ptr<HandlePassing>> passings = {
        std::make_shared<FileHandlePassing>(libraries.driver, *place.exchange, place.rank,
                                            place.timeout_s / 2),
        std::make_shared<FabricHandlePassing>(libraries.driver, *place.exchange, place.rank)};
    return MakeCudaRank(libraries, control, std::move(place), *std::move(device),
                        std::move(sharing), {.why_none = "they are processes"},
                        std::move(passings));
  };
  return RunOnMpi(shape, timeout_s, pin, make, body);
}

}  // namespace coconet
