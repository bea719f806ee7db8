#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/control/out_of_band.h"
#include "runtime/membership.h"
#include "runtime/world.h"

namespace coconet {

/// How a rank that an external launcher started joins its world: out of band, by a communicator,
/// or, with neither, alone.
struct JoinOptions {
  /// `ranks` is ignored. Ranks are not pinned to cores unless `pin` is set: threads that the caller
  /// starts later would stay on the core of the thread that joined.
  WorldOptions world = {.pin = false};
  std::optional<OutOfBand> out_of_band = std::nullopt;
  /// Points to an MPI_Comm of the caller's, an intracommunicator, which is duplicated. The caller
  /// initialises MPI before, and finalises it after the rank has left.
  const void* mpi_comm = nullptr;
};

/// Collective over the ranks that the options connect. DeadlineExceeded if one does not come, with
/// its number if the all-gather can tell (OutOfBand::absent). Unimplemented: simulated GPUs, which
/// are of one process (RunWorld). Unavailable: ranks on several machines that joined out of band
/// without libfabric. A process may join several worlds, one after another or at once.
absl::StatusOr<std::unique_ptr<Membership>> Join(const JoinOptions& options);

}  // namespace coconet
