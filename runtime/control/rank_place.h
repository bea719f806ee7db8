#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/control/board.h"
#include "runtime/mesh.h"
#include "runtime/node/memory.h"
#include "runtime/rank.h"

namespace coconet {

/// Which threads of a process may call the library of collectives: the first only, any one at a
/// time, or all concurrently.
enum class LibraryThreads : uint8_t { kFirst, kOneAtATime, kAny };

/// Indexed by Group; one communicator may serve two groups.
using Libraries = std::array<std::shared_ptr<Communicator>, kGroups>;

/// What a world gives to a rank, on any backend and for ranks as threads or as processes.
struct RankPlace {
  int rank = 0;
  Mesh mesh;
  int machine_rank = 0;  // among this machine's ranks; a machine may hold several nodes
  int machine_ranks = 1;
  std::vector<int> cores;  // that all ranks of this machine may use
  bool pin = true;
  double timeout_s = 60;
  Board board;
  std::unique_ptr<Exchange> exchange;
  /// The libraries of collectives on host memory: one set per lane, whose collectives may overlap.
  std::array<Libraries, kLanes> libraries;
  std::string library;  // name and version of `libraries`
  LibraryThreads library_threads = LibraryThreads::kAny;
  std::unique_ptr<Sharing> sharing;  // of host memory
  bool of_threads = false;           // the ranks are threads of one process
};

/// Makes a rank's endpoint; called on the rank's own thread.
using MakeRank = std::function<absl::StatusOr<std::unique_ptr<Rank>>(RankPlace)>;

}  // namespace coconet
