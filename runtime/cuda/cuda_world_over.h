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

/// What a world of GPUs runs over. Outlives it.
struct CudaLibraries {
  const DriverApi& driver;
  OpensCublasLt open_cublaslt = OpenCublasLt;  // called when a plan multiplies matrices
  OpenStreamLibraries open_libraries =
      {};  // where there is one: called in worlds whose ranks have a GPU each
  NamesBuffer name_buffer =
      nullptr;                 // is told what buffers of plans are called, where there is one
  bool green_contexts = true;  // threads that share a GPU have multiprocessors of their own, where
                               // its driver can do that
  bool multicast = true;       // GPUs that can have addresses of the memory of all of them, do
};

/// RunCudaWorld over given libraries. `control`: what every plan's control begins as.
absl::Status RunCudaWorldOver(const CudaLibraries& libraries, const Control& control, int ranks,
                              const WorldShape& shape, double timeout_s, bool pin,
                              const std::function<absl::Status(Rank&)>& body);

/// Instead of RunCudaMpiWorldOver, in a process that has no GPU because of `why`: so all processes
/// hear of it.
absl::Status RefuseCudaMpiWorld(const absl::Status& why, const WorldShape& shape, double timeout_s);

/// RunCudaMpiWorld over given libraries.
absl::Status RunCudaMpiWorldOver(const CudaLibraries& libraries, const Control& control,
                                 const WorldShape& shape, double timeout_s, bool pin,
                                 const std::function<absl::Status(Rank&)>& body);

/// A rank of such worlds, in its place, on a GPU.
absl::StatusOr<std::unique_ptr<Rank>> MakeCudaRank(
    const CudaLibraries& libraries, const Control& control, RankPlace place,
    std::shared_ptr<Device> device, std::unique_ptr<GpuSharing> sharing, GpuPart part,
    std::vector<std::shared_ptr<HandlePassing>> passings);

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_CUDA_WORLD_OVER_H_
