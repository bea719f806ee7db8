#pragma once

#include "absl/status/status.h"
#include "runtime/mesh.h"
#include "runtime/node/rank_place.h"
#include "runtime/rank.h"

namespace coconet {

/// Runs `body` on threads of this process, one per rank; see RunWorld.
absl::Status RunThreadWorld(const WorldRequest& request, const RankBody& body);

/// The same for any kind of rank.
absl::Status RunOnThreads(const WorldRequest& request, const MakeRank& make, const RankBody& body);

}  // namespace coconet
