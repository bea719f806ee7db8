#ifndef COCONET_RUNTIME_HOST_RANK_PLACE_H_
#define COCONET_RUNTIME_HOST_RANK_PLACE_H_

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/host/board.h"
#include "runtime/host/host_rank.h"
#include "runtime/host/memory.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"

namespace coconet {

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
/// One of the host backend.
absl::StatusOr<std::unique_ptr<Rank>> MakeHostRank(RankPlace place);

}  // namespace coconet

#endif  // COCONET_RUNTIME_HOST_RANK_PLACE_H_
