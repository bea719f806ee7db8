#ifndef COCONET_RUNTIME_MPI_MPI_PLACE_H_
#define COCONET_RUNTIME_MPI_MPI_PLACE_H_

#include <mpi.h>
#include <sys/types.h>

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/rank.h"

namespace coconet {

/// Where MPI's launcher has put a rank, and its peers.
struct Place {
  int local_rank = 0;  // among the ranks of this machine
  int local_size = 1;
  std::vector<int> machines = {};  // of each rank: the lowest rank on its machine
  std::vector<pid_t> pids = {};  // of each rank: its process, 0 on other machines and for this rank
  std::vector<int> cores =
      {};  // that the ranks of this machine may run on; first those that they have as their own
  int core = 0;  // this rank's own
};

/// Collective.
absl::StatusOr<Place> FindPlace(MPI_Comm comm, Exchange& exchange, int rank);

/// Gives each rank of a machine, in order, that core it may run on which the fewest before it have:
/// launchers confine each rank to a core of its own, or none at all. `masks`: the cores that each
/// may run on.
std::vector<int> OwnCores(const std::vector<std::vector<int>>& masks);

/// Those of `own` first, then the rest of `masks`; each once.
std::vector<int> CoresOfNode(const std::vector<std::vector<int>>& masks,
                             const std::vector<int>& own);

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_MPI_PLACE_H_
