#include "runtime/cuda/cuda_world_over.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "coconet/base/status.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/memory/freeing_exchange.h"
#include "runtime/threads/thread_world.h"

namespace coconet {
namespace {

/// Opens one of the GPUs that this process sees, in turns by `machine_rank`.
absl::StatusOr<std::shared_ptr<Device>> OpenInTurn(const DriverApi& driver, int machine_rank) {
  int count = 0;
  RETURN_IF_CU(driver, DeviceGetCount, &count);
  return Device::Open(driver, count == 0 ? 0 : machine_rank % count);
}

/// A rank that is one of several threads of this process.
absl::StatusOr<std::unique_ptr<Rank>> MakeOfThread(const CudaLibraries& libraries, RankPlace place,
                                                   std::shared_ptr<Device> device, GpuPart part) {
  auto sharing =
      std::make_unique<ThreadGpuSharing>(*place.exchange, SharingMemory(place.mesh, place.rank));
  place.exchange = std::make_unique<FreeingExchange>(std::move(place.exchange), device);
  auto passing = std::make_shared<ThreadHandlePassing>(*place.exchange);
  return CudaRank::Make({.libraries = libraries,
                         .place = std::move(place),
                         .device = std::move(device),
                         .sharing = std::move(sharing),
                         .part = std::move(part),
                         .passings = {std::move(passing)}});
}

}  // namespace

absl::Status RunCudaWorldOver(const CudaLibraries& libraries, const WorldRequest& request,
                              const RankBody& body) {
  int count = 0;
  RETURN_IF_CU(libraries.driver, DeviceGetCount, &count);
  const int ranks = request.ranks, used = std::max(std::min(ranks, count), 1);
  std::vector<std::shared_ptr<Device>> devices;
  std::vector<std::vector<GpuPart>> parts;
  for (int i = 0; i < used; ++i) {
    ASSIGN_OR_RETURN(devices.emplace_back(), Device::Open(libraries.driver, i));
    parts.push_back(
        SplitAmong(devices[i], (ranks - i + used - 1) / used, libraries.green_contexts));
  }
  const auto make = [&](RankPlace place) {
    const int on = place.rank % used, number = place.rank / used;
    return MakeOfThread(libraries, std::move(place), devices[on], parts[on][number]);
  };
  return RunOnThreads(request, make, body);
}

MakeRank LaunchedCudaRanksOver(const CudaLibraries& libraries) {
  return [libraries](RankPlace place) -> absl::StatusOr<std::unique_ptr<Rank>> {
    absl::StatusOr<std::shared_ptr<Device>> device =
        OpenInTurn(libraries.driver, place.machine_rank);
    RETURN_IF_ERROR(place.exchange->Agree(device.status()));
    if (place.of_threads) {
      return MakeOfThread(libraries, std::move(place), *std::move(device),
                          {.why_none = "they joined one by one"});
    }
    auto sharing = std::make_unique<ProcessGpuSharing>(*place.exchange, place.rank,
                                                       SharingMemory(place.mesh, place.rank));
    // Half of the time, because a rank that fails then waits for the others in the exchange, which
    // also has a deadline.
    std::vector<std::shared_ptr<HandlePassing>> passings = {
        std::make_shared<FileHandlePassing>(libraries.driver, *place.exchange, place.rank,
                                            place.timeout_s / 2),
        std::make_shared<FabricHandlePassing>(libraries.driver, *place.exchange, place.rank)};
    return CudaRank::Make({.libraries = libraries,
                           .place = std::move(place),
                           .device = *std::move(device),
                           .sharing = std::move(sharing),
                           .part = {.why_none = "they are processes"},
                           .passings = std::move(passings)});
  };
}

}  // namespace coconet
