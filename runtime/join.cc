#include "runtime/join.h"

#include <utility>

#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "runtime/cuda/cuda_world.h"
#include "runtime/host/host_rank.h"
#include "runtime/mesh.h"
#include "runtime/mpi/mpi_world.h"
#include "runtime/processes/out_of_band_transport.h"
#include "runtime/processes/process_world.h"

namespace coconet {
namespace {

absl::StatusOr<MakeRank> RanksOf(Backend backend) {
  switch (backend) {
    case Backend::kHost:
      return MakeRank(MakeHostRank);
    case Backend::kCuda:
      return LaunchedCudaRanks();
    case Backend::kSimt:
      return absl::UnimplementedError(
          "Join: simulated GPUs are of one process; run their ranks by RunWorld");
  }
  return absl::InvalidArgumentError("Join: no such backend");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Membership>> Join(const JoinOptions& options) {
  if (options.out_of_band.has_value() && options.mpi_comm != nullptr)
    return absl::InvalidArgumentError("Join: want a communicator or an all-gather, have both");
  const WorldOptions& world = options.world;
  const WorldRequest request{
      .shape = {.stages = world.stages, .nodes = world.nodes},
      .timeout_s = world.timeout_s > 0 ? world.timeout_s : GetEnv().timeout_s,
      .pin = world.pin};
  ASSIGN_OR_RETURN(const MakeRank make, RanksOf(world.backend));
  if (options.mpi_comm != nullptr) return JoinMpi(options.mpi_comm, request, make);
  ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport,
                   OutOfBandTransport::Over(options.out_of_band.value_or(OutOfBand{})));
  return ProcessWorld::Join(std::move(transport), request, make);
}

}  // namespace coconet
