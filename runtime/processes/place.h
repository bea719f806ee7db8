#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/rank.h"

namespace coconet {

/// Where a launcher has put this rank and its peers.
struct Place {
  int local_rank = 0;  // index among the ranks of this machine
  int local_size = 1;
  std::vector<int> machines = {};  // by rank: the lowest rank on its machine
  std::vector<pid_t> pids = {};    // by rank: its process; 0 for other machines and for this rank
  /// Cores that the ranks of this machine may run on; the ranks' own cores come first.
  std::vector<int> cores = {};
  int core = 0;                 // this rank's own
  bool in_one_process = false;  // all ranks are threads of this process
  int64_t meeting = 0;          // number of this FindPlace in rank 0's process; equal on all ranks
};

/// Collective. `machine` names the machine that this rank is on, for all ranks on it alike.
absl::StatusOr<Place> FindPlace(const std::string& machine, Exchange& exchange, int rank);

/// A name of this machine that no other machine has: of this boot of the system, in its namespaces
/// of hosts and processes, since processes share memory only within these.
std::string ThisMachine();

/// The own core of each rank of a machine: in rank order, the allowed core with the fewest ranks so
/// far, since launchers confine each rank to one core, to several or not at all. `masks`: by rank,
/// its allowed cores.
std::vector<int> OwnCores(const std::vector<std::vector<int>>& masks);

/// The cores of `own`, then the rest of `masks`; each once.
std::vector<int> CoresOfNode(const std::vector<std::vector<int>>& masks,
                             const std::vector<int>& own);

}  // namespace coconet
