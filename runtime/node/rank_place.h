#ifndef COCONET_RUNTIME_NODE_RANK_PLACE_H_
#define COCONET_RUNTIME_NODE_RANK_PLACE_H_

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/mesh.h"
#include "runtime/node/board.h"
#include "runtime/node/memory.h"
#include "runtime/rank.h"

namespace coconet {

/// Which threads of a process may be inside the library of collectives.
enum class LibraryThreads : uint8_t { kFirst, kOneAtATime, kAny };

/// By Group; one that serves two groups is there twice.
using Libraries = std::array<std::shared_ptr<Communicator>, kGroups>;

/// What a rank has of its world, whatever it computes on, and whether it is a thread or a process.
struct RankPlace {
  int rank = 0;
  Mesh mesh;
  int machine_rank = 0;  // among the ranks of this machine
  int machine_ranks = 1;
  std::vector<int> cores;  // of this machine, for all its ranks
  bool pin = true;
  double timeout_s = 60;
  Board board;
  std::unique_ptr<Exchange> exchange;
  std::array<Libraries, kLanes> libraries;  // between the host's memory
  std::string library;                      // their name and version
  LibraryThreads library_threads = LibraryThreads::kAny;
  std::unique_ptr<Sharing> sharing;  // of the host's memory
};

/// Makes the endpoint of a rank; called on the thread that is the rank.
using MakeRank = std::function<absl::StatusOr<std::unique_ptr<Rank>>(RankPlace)>;

}  // namespace coconet

#endif  // COCONET_RUNTIME_NODE_RANK_PLACE_H_
