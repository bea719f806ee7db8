#include "runtime/cuda/cuda_world_over.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "coconet/base/status.h"
#include "runtime/cuda/cuda_rank.h"

namespace coconet {

absl::Status RunCudaWorldOver(const CudaLibraries& libraries, const Control& control, int ranks, const WorldShape& shape, double timeout_s, bool pin,
                              const std::function<absl::Status(Rank&)>& body) {
  int count = 0;
  RETURN_IF_CU(libraries.driver, DeviceGetCount, &count);
  std::vector<std::shared_ptr<Device>> devices;
  for (int i = 0; i < std::max(std::min(ranks, count), 1); ++i) {
    ASSIGN_OR_RETURN(devices.emplace_back(), Device::Open(libraries.driver, i));
  }
  const int used = static_cast<int>(devices.size());
  const auto make = [&](ThreadPlace place) {
    const int on = place.rank % used;
    return CudaRank::Make({.place = std::move(place),
                           .device = devices[on],
                           .ranks_on_device = (ranks - on + used - 1) / used,
                           .open_cublaslt = libraries.open_cublaslt,
                           .control = control,
                           .open_libraries = libraries.open_libraries});
  };
  return RunOnThreads(ranks, shape, timeout_s, pin, make, body);
}

}  // namespace coconet
