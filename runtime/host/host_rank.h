#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/control/board.h"
#include "runtime/control/rank_place.h"
#include "runtime/host/executor.h"
#include "runtime/host/team.h"
#include "runtime/node/lanes.h"
#include "runtime/node/memory.h"
#include "runtime/node/sync_pool.h"
#include "runtime/rank.h"

namespace coconet {

/// A rank of the host backend. Worlds of threads and of MPI processes give it different places.
class HostRank final : public Rank {
 public:
  explicit HostRank(RankPlace place);

  int rank() const override { return place_.rank; }
  int size() const override { return place_.mesh.size(); }
  const Mesh& mesh() const override { return place_.mesh; }
  const Topology& topology() const override { return topology_; }
  Exchange& exchange() override { return *place_.exchange; }
  CallLog* calls() override { return &place_.board.calls(rank()); }
  absl::Status CheckWorld() const override { return place_.board.Left(); }
  Communicator& library(Group group) override {
    return *place_.libraries[0][static_cast<size_t>(group)];
  }

  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes, bool symmetric) override;
  absl::StatusOr<std::unique_ptr<Memory>> Adopt(void* address, int64_t bytes,
                                                bool symmetric) override;
  absl::StatusOr<std::unique_ptr<Module>> Load(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<BoundPlan>> Bind(const Plan& plan, const Module& module,
                                                  absl::Span<Memory* const> buffers,
                                                  double timeout_s) override;
  void Leave(const absl::Status& why) override { place_.board.Leave(place_.rank, why); }

 private:
  absl::StatusOr<std::unique_ptr<Memory>> AllocateLocal(int64_t bytes);
  absl::StatusOr<std::unique_ptr<Memory>> AllocateSymmetric(int64_t bytes);
  /// Control::near for plans whose ranks have `blocks` blocks each.
  std::vector<unsigned char> Near(int blocks) const;
  /// OK when the library's threading allows library collectives on the lanes that use them.
  absl::Status CheckLibraryLanes(const Plan& plan) const;
  /// Collective. Makes synchronization memory of a layout's bytes. `symmetric`: peers reach the
  /// shared part.
  absl::StatusOr<std::unique_ptr<SyncSet>> MakeSync(const SyncLayout& bytes, bool symmetric);
  /// The parts of an executor that do not depend on addresses: wait terms, teams, libraries.
  Executor::Parts PartsFor(const Plan& plan, double timeout_s);
  std::unique_ptr<BoundPlan> MakeExecutor(Executor::Parts parts);

  RankPlace place_;
  Topology topology_;
  std::vector<int> cores_;  // by block of this rank; empty: not pinned
  SyncPool sync_;
  std::array<Team, kLanes> teams_;
  std::unique_ptr<LaneThread> lane_thread_;  // made for the first plan with two lanes
};

/// The cores of a rank's blocks 0, 1, ...: its own core first, then the cores that no rank owns,
/// then those of other ranks.
std::vector<int> CoresOfBlocks(const std::vector<int>& cores, int local_rank, int local_ranks);

/// By rank of the machine: true when it may use the same core as `local_rank`, with `blocks` blocks
/// per rank; true for all if there are more threads than cores and they are not pinned.
std::vector<unsigned char> SharingCores(const std::vector<int>& cores, int local_rank,
                                        int local_ranks, int blocks, bool pin);

/// The HostRank at `place`; a MakeRank.
absl::StatusOr<std::unique_ptr<Rank>> MakeHostRank(RankPlace place);

}  // namespace coconet
