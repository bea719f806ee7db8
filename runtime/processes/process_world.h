#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/control/board.h"
#include "runtime/control/death_watch.h"
#include "runtime/control/rank_place.h"
#include "runtime/membership.h"
#include "runtime/mesh.h"
#include "runtime/node/memory.h"
#include "runtime/processes/place.h"
#include "runtime/processes/transport.h"
#include "runtime/threads/thread_world.h"

namespace coconet {

/// A rank of a world whose ranks an external launcher started.
class ProcessWorld final : public Membership {
 public:
  /// Collective. Places the ranks, shares memory between those of a machine, and makes this one by
  /// `make`. On failure this rank has left.
  static absl::StatusOr<std::unique_ptr<ProcessWorld>> Join(std::unique_ptr<Transport> transport,
                                                            const WorldRequest& request,
                                                            const MakeRank& make);
  ~ProcessWorld() override;

  Rank& rank() override { return *endpoint_; }
  void Leave(const absl::Status& why) override;
  /// Whether a process of another rank on this machine ended without leaving.
  bool SawDeath() const { return watch_.has_value() && watch_->SawDeath(); }

 private:
  explicit ProcessWorld(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}
  absl::Status Meet(const WorldRequest& request, const MakeRank& make);
  /// Pins the calling thread to the rank's own core until the rank leaves.
  void Pin(const Place& place);

  std::unique_ptr<Transport> transport_;
  std::vector<std::shared_ptr<Region>> regions_;  // of the board group
  std::shared_ptr<const ThreadWorld> threads_;    // of all ranks; null: the transport connects them
  std::optional<Board> board_;
  std::optional<DeathWatch> watch_;
  std::unique_ptr<Rank> endpoint_;
  std::vector<int> cores_before_;  // of the pinned thread; empty: it is not pinned
  int pinned_ = 0;                 // its id
  bool failed_ = false;
};

}  // namespace coconet
