#include "runtime/host/host_rank.h"
#include "runtime/mpi/mpi_world.h"

namespace coconet {

absl::Status RunOnMpi(const WorldRequest&, const MakeRank&, const RankBody&) {
  return absl::UnavailableError(
      "RunWorld: this process was started by an MPI launcher, but this build has no MPI; install "
      "libopenmpi-dev and build again");
}

absl::StatusOr<std::unique_ptr<Membership>> JoinMpi(const void*, const WorldRequest&,
                                                    const MakeRank&) {
  return absl::UnavailableError(
      "Join: this build has no MPI; install libopenmpi-dev and build again, or join out of band");
}

absl::Status RunMpiWorld(const WorldRequest& request, const RankBody& body) {
  return RunOnMpi(request, MakeHostRank, body);
}

}  // namespace coconet
