#include "runtime/mpi/mpi_world.h"

namespace coconet {

absl::Status RunMpiWorld(double /*timeout_s*/, bool /*pin*/, const std::function<absl::Status(Rank&)>& /*body*/) {
  return absl::UnavailableError(
      "this process was started by an MPI launcher, but this build is without MPI; install libopenmpi-dev and rebuild");
}

}  // namespace coconet
