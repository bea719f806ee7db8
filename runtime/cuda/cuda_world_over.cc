#include "runtime/cuda/cuda_world_over.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "coconet/base/status.h"
#include "runtime/cuda/cuda_rank.h"
#include "runtime/cuda/memory/freeing_exchange.h"
#include "runtime/threads/thread_world.h"

namespace coconet {

absl::StatusOr<std::unique_ptr<Rank>> MakeCudaRank(
    const CudaLibraries& libraries, const Control& control, RankPlace place,
    std::shared_ptr<Device> device, std::unique_ptr<GpuSharing> sharing, GpuPart part,
    std::vector<std::shared_ptr<HandlePassing>> passings) {
  return CudaRank::Make({.place = std::move(place),
                         .device = std::move(device),
                         .sharing = std::move(sharing),
                         .part = std::move(part),
                         .open_cublaslt = libraries.open_cublaslt,
                         .control = control,
                         .open_libraries = libraries.open_libraries,
                         .multicast = libraries.multicast,
                         .passings = std::move(passings),
                         .name_buffer = libraries.name_buffer});
}

absl::Status RunCudaWorldOver(const CudaLibraries& libraries, const Control& control, int ranks,
                              const WorldShape& shape, double timeout_s, bool pin,
                              const std::function<absl::Status(Rank&)>& body) {
  int count = 0;
  RETURN_IF_CU(libraries.driver, DeviceGetCount, &count);
  std::vector<std::shared_ptr<Device>> devices;
  for (int i = 0; i < std::max(std::min(ranks, count), 1); ++i) {
    ASSIGN_OR_RETURN(devices.emplace_back(), Device::Open(libraries.driver, i));
  }
  const int used = static_cast<int>(devices.size());
  std::vector<std::vector<GpuPart>> parts;
  for (int i = 0; i < used; ++i)
    parts.push_back(
        SplitAmong(devices[i], (ranks - i + used - 1) / used, libraries.green_contexts));
  const auto make = [&](RankPlace place) {
    auto sharing =
        std::make_unique<ThreadGpuSharing>(*place.exchange, SharingMemory(place.mesh, place.rank));
    const int on = place.rank % used, number = place.rank / used;
    place.exchange = std::make_unique<FreeingExchange>(std::move(place.exchange), devices[on]);
    auto passing = std::make_shared<ThreadHandlePassing>(*place.exchange);
    return MakeCudaRank(libraries, control, std::move(place), devices[on], std::move(sharing),
                        parts[on][number], {std::move(passing)});
  };
  return RunOnThreads(ranks, shape, timeout_s, pin, make, body);
}

}  // namespace coconet
