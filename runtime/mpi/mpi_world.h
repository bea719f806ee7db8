#pragma once

#include "absl/status/status.h"
#include "runtime/mesh.h"
#include "runtime/node/rank_place.h"
#include "runtime/rank.h"

namespace coconet {

/// Runs `body` on the calling thread as this process's rank of MPI_COMM_WORLD; see RunWorld.
/// Initialises MPI unless it already has been, and then finalises it at exit. Unavailable in a
/// build without MPI.
absl::Status RunMpiWorld(const WorldRequest& request, const RankBody& body);

/// The same for any kind of rank.
absl::Status RunOnMpi(const WorldRequest& request, const MakeRank& make, const RankBody& body);

}  // namespace coconet
