#pragma once

#include "absl/status/status.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"

namespace coconet {

/// Runs `body` on threads of this process, one per rank; see RunWorld. GPUs are dealt to
/// ranks in turns, so with more ranks than GPUs several share one. While `body` runs, the rank's
/// GPU is current for its thread. Unavailable, saying what to do, where there is no driver or no
/// GPU.
absl::Status RunCudaWorld(const WorldRequest& request, const RankBody& body);

/// Runs `body` on the calling thread as this process's rank of MPI_COMM_WORLD. The GPUs that the
/// processes of a machine see are dealt to them in turns; while `body` runs, this one's is current
/// for the thread. Unavailable, saying what to do, where
/// there is no driver, no GPU or no MPI.
absl::Status RunCudaMpiWorld(const WorldRequest& request, const RankBody& body);

}  // namespace coconet
