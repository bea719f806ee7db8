#ifndef COCONET_RUNTIME_CUDA_CUDA_WORLD_H_
#define COCONET_RUNTIME_CUDA_CUDA_WORLD_H_

#include <functional>

#include "absl/status/status.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"

namespace coconet {

/// Runs `body` on `ranks` threads of this process, one per rank; see RunWorld. GPUs are dealt to
/// ranks in turns, so with more ranks than GPUs several share one. Unavailable, saying what to do,
/// where there is no driver or no GPU.
absl::Status RunCudaWorld(int ranks, const WorldShape& shape, double timeout_s, bool pin,
                          const std::function<absl::Status(Rank&)>& body);

/// Runs `body` on the calling thread as this process's rank of MPI_COMM_WORLD. The GPUs that the
/// processes of a machine see are dealt to them in turns. Unavailable, saying what to do, where
/// there is no driver, no GPU or no MPI.
absl::Status RunCudaMpiWorld(const WorldShape& shape, double timeout_s, bool pin,
                             const std::function<absl::Status(Rank&)>& body);

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_CUDA_WORLD_H_
