#pragma once

#include "absl/status/status.h"
#include "runtime/control/rank_place.h"
#include "runtime/cuda/cuda_rank.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"

namespace coconet {

/// RunCudaWorld over given libraries.
absl::Status RunCudaWorldOver(const CudaLibraries& libraries, const WorldRequest& request,
                              const RankBody& body);

/// LaunchedCudaRanks over given libraries.
MakeRank LaunchedCudaRanksOver(const CudaLibraries& libraries);

}  // namespace coconet
