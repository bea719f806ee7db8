#pragma once

#include "absl/status/status.h"
#include "runtime/control/rank_place.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"

namespace coconet {

/// Runs `body` on threads of this process, one per rank; see RunWorld. GPUs are dealt to
/// ranks in turns, so with more ranks than GPUs several share one. While `body` runs, the rank's
/// GPU is current for its thread. Unavailable, saying what to do, if there is no driver or no GPU.
absl::Status RunCudaWorld(const WorldRequest& request, const RankBody& body);

/// Makes the rank of a process, or of a thread if RankPlace::of_threads. The GPUs that the ranks of
/// a machine see are dealt to them in turns; this one's is current for the calling thread from then
/// on. The ranks fail together: Unavailable, saying what to do, if one has no driver or no GPU.
MakeRank LaunchedCudaRanks();

}  // namespace coconet
