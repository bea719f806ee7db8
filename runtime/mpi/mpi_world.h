#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/control/rank_place.h"
#include "runtime/membership.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"

namespace coconet {

/// Runs `body` on the calling thread as this process's rank of MPI_COMM_WORLD; see RunWorld.
/// Initialises MPI unless it already has been, and then finalises it at exit. Unavailable in a
/// build without MPI.
absl::Status RunMpiWorld(const WorldRequest& request, const RankBody& body);

/// The same for any kind of rank.
absl::Status RunOnMpi(const WorldRequest& request, const MakeRank& make, const RankBody& body);

/// Collective. Joins the ranks of a communicator of the caller's, which is duplicated; `comm`
/// points to an MPI_Comm. FailedPrecondition if MPI is not initialised, or is finalised already;
/// DeadlineExceeded, with its number, if a rank does not come.
absl::StatusOr<std::unique_ptr<Membership>> JoinMpi(const void* comm, const WorldRequest& request,
                                                    const MakeRank& make);

}  // namespace coconet
