#include "runtime/host/host_rank.h"
#include "runtime/mpi/mpi_world.h"

namespace coconet {

absl::Status RunOnMpi(const WorldShape& /*shape*/, double /*timeout_s*/, bool /*pin*/,
                      const MakeRank& /*make*/,
                      const std::function<absl::Status(Rank&)>& /*body*/) {
  return absl::UnavailableError(
      "RunWorld: this process was started by an MPI launcher, but this build has no MPI; install "
      "libopenmpi-dev and "
      "build again");
}

absl::Status RunMpiWorld(const WorldShape& shape, double timeout_s, bool pin,
                         const std::function<absl::Status(Rank&)>& body) {
  return RunOnMpi(shape, timeout_s, pin, MakeHostRank, body);
}

}  // namespace coconet
