#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/control/board.h"
#include "runtime/control/rank_place.h"
#include "runtime/control/thread_exchange.h"
#include "runtime/mesh.h"
#include "runtime/node/memory.h"
#include "runtime/node/wait.h"
#include "runtime/rank.h"
#include "runtime/threads/thread_communicator.h"

namespace coconet {

/// What the ranks of one world share, which are threads of one process. It outlives the ranks.
class ThreadWorld {
 public:
  /// `cores`: that the ranks may run on.
  static absl::StatusOr<std::shared_ptr<const ThreadWorld>> Make(const Mesh& mesh,
                                                                 std::vector<int> cores,
                                                                 double timeout_s);
  /// One world for mesh.size() callers that pass the same `meeting`, one call per rank. The first
  /// call makes it.
  static absl::StatusOr<std::shared_ptr<const ThreadWorld>> Meet(int64_t meeting, const Mesh& mesh,
                                                                 std::vector<int> cores,
                                                                 double timeout_s);
  const std::vector<int>& cores() const { return cores_; }
  Board board() const { return board_; }
  /// Where a rank is. Does not pin its thread.
  RankPlace PlaceOf(int rank, bool pin) const;

 private:
  ThreadWorld(const Mesh& mesh, std::vector<int> cores, double timeout_s,
              std::shared_ptr<Region> board_memory);

  Mesh mesh_;
  std::vector<int> cores_;
  WaitTerms terms_;
  double timeout_s_;
  std::shared_ptr<Region> board_memory_;
  Board board_;
  std::shared_ptr<Mailboxes> mailboxes_;
  std::array<std::array<std::shared_ptr<Desks>, kGroups>, kLanes> desks_;  // by lane and group
};

/// Runs `body` on threads of this process, one per rank; see RunWorld.
absl::Status RunThreadWorld(const WorldRequest& request, const RankBody& body);

/// The same for any kind of rank.
absl::Status RunOnThreads(const WorldRequest& request, const MakeRank& make, const RankBody& body);

}  // namespace coconet
