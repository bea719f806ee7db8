#ifndef COCONET_RUNTIME_CUDA_CUDA_WORLD_OVER_H_
#define COCONET_RUNTIME_CUDA_CUDA_WORLD_OVER_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/driver/green_context.h"
#include "runtime/cuda/driver/stream_library.h"
#include "runtime/cuda/gemm/cublaslt_api.h"
#include "runtime/cuda/memory/gpu_sharing.h"
#include "runtime/cuda/memory/handle_passing.h"
#include "runtime/kernel_abi.h"
#include "runtime/mesh.h"
#include "runtime/node/rank_place.h"
#include "runtime/rank.h"

namespace coconet {

/// The libraries that a world of GPUs uses. Must outlive it.
struct CudaLibraries {
  const DriverApi& driver;
  OpensCublasLt open_cublaslt = OpenCublasLt;  // called when a plan multiplies matrices
  OpenStreamLibraries open_libraries = {};  // if set, called where each rank has a GPU of its own
  NamesBuffer name_buffer = nullptr;        // if set, is told the names of the plans' buffers
  /// Threads that share a GPU get multiprocessors of their own, where its driver supports that.
  bool green_contexts = true;
  bool multicast = true;  // use multicast addresses where the GPUs have them
};

/// RunCudaWorld over given libraries. `control`: initial value of each plan's Control.
absl::Status RunCudaWorldOver(const CudaLibraries& libraries, const Control& control, int ranks,
                              const WorldShape& shape, double timeout_s, bool pin,
                              const std::function<absl::Status(Rank&)>& body);

/// Takes the place of RunCudaMpiWorldOver in a process that has no GPU because of `why`, so that
/// all processes fail with that reason.
absl::Status RefuseCudaMpiWorld(const absl::Status& why, const WorldShape& shape, double timeout_s);

/// RunCudaMpiWorld over given libraries.
absl::Status RunCudaMpiWorldOver(const CudaLibraries& libraries, const Control& control,
                                 const WorldShape& shape, double timeout_s, bool pin,
                                 const std::function<absl::Status(Rank&)>& body);

/// A rank of such a world at `place`, on `device`.
absl::StatusOr<std::unique_ptr<Rank>> MakeCudaRank(
    const CudaLibraries& libraries, const Control& control, RankPlace place,
    std::shared_ptr<Device> device, std::unique_ptr<GpuSharing> sharing, GpuPart part,
    std::vector<std::shared_ptr<HandlePassing>> passings);

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_CUDA_WORLD_OVER_H_
