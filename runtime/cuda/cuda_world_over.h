#pragma once

#include "absl/status/status.h"
#include "runtime/cuda/cuda_rank.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"

namespace coconet {

/// RunCudaWorld over given libraries.
absl::Status RunCudaWorldOver(const CudaLibraries& libraries, const WorldRequest& request,
                              const RankBody& body);

/// RunCudaMpiWorld over given libraries.
absl::Status RunCudaMpiWorldOver(const CudaLibraries& libraries, const WorldRequest& request,
                                 const RankBody& body);

/// Takes the place of RunCudaMpiWorldOver in a process that has no GPU because of `why`, so that
/// all processes fail with that reason.
absl::Status RefuseCudaMpiWorld(const absl::Status& why, const WorldRequest& request);

}  // namespace coconet
