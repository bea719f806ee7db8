#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/finding.h"

namespace coconet::bench {

/// An MCA parameter of Open MPI and its value.
using MpiParameter = std::pair<std::string, std::string>;

struct Launch {
  int processes = 0;         // under mpirun; 0: one process without mpirun
  std::string program = {};  // the worker's; "": this one
  /// A command that starts the processes instead of mpirun, as bench/cluster/run.sh does; its exit
  /// code 77 means that this machine cannot.
  std::vector<std::string> launcher = {};
  std::vector<MpiParameter> parameters = {};
  std::vector<std::string> arguments = {};  // "--worker=..." and its further flags
  std::string cache = {};                   // the worker's COCONET_CACHE_DIR; "": this process's
  std::string scratch = {};                 // a folder for temporary files
  double time_limit_s = 600;                // under mpirun
};

/// Starts this program again as a worker, waits for it to end, and returns the findings of its rank
/// 0, which the worker writes to --out=FILE. There may be more ranks than cores; they pin
/// themselves. Unavailable when mpirun is not on PATH or the launcher cannot work here; Internal,
/// with the end of its output, when it failed; Cancelled when Ctrl-C ended it.
absl::StatusOr<std::vector<Finding>> RunWorker(const Launch& launch);

}  // namespace coconet::bench
