#ifndef COCONET_RUNTIME_HOST_HOST_RANK_H_
#define COCONET_RUNTIME_HOST_HOST_RANK_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/host/executor.h"
#include "runtime/host/team.h"
#include "runtime/node/board.h"
#include "runtime/node/lanes.h"
#include "runtime/node/memory.h"
#include "runtime/node/rank_place.h"
#include "runtime/rank.h"

namespace coconet {

/// A rank of the host backend. What worlds of threads and of processes do differently comes in as
/// parts.
class HostRank final : public Rank {
 public:
  struct Parts {
    int rank = 0;
    Mesh mesh;
    int machine_rank =
        0;  // among the ranks on this machine, which are those of one or several nodes of the mesh
    int machine_ranks = 1;
    Topology topology;
    std::vector<int> cores;  // of this machine, for all its ranks
    bool pin = true;
    double timeout_s = 60;
    std::unique_ptr<Exchange> exchange;
    std::array<Libraries, kLanes> libraries;  // of two lanes, since their collectives must not meet
    LibraryThreads library_threads = LibraryThreads::kAny;
    std::unique_ptr<Sharing> sharing;
    Board board;
  };
  explicit HostRank(Parts parts);

  int rank() const override { return parts_.rank; }
  int size() const override { return parts_.mesh.size(); }
  const Mesh& mesh() const override { return parts_.mesh; }
  const Topology& topology() const override { return parts_.topology; }
  Exchange& exchange() override { return *parts_.exchange; }
  Communicator& library(Group group) override {
    return *parts_.libraries[0][static_cast<size_t>(group)];
  }

  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes, bool symmetric) override;
  absl::StatusOr<std::unique_ptr<Module>> Load(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<BoundPlan>> Bind(const Plan& plan, const Module& module,
                                                  absl::Span<Memory* const> buffers,
                                                  double timeout_s) override;
  void Leave(const absl::Status& why) override { parts_.board.Leave(parts_.rank, why); }

 private:
  absl::StatusOr<std::unique_ptr<Memory>> AllocateLocal(int64_t bytes);
  absl::StatusOr<std::unique_ptr<Memory>> AllocateSymmetric(int64_t bytes);
  /// By rank of this node, and beside: whether it shares a core with this rank, where each has so
  /// many blocks.
  std::vector<unsigned char> Near(int blocks) const;
  /// OK when the library may be called from the plan's lanes.
  absl::Status CheckLibraryLanes(const Plan& plan) const;
  /// What the plan runs on: terms of waiting, teams, libraries.
  Executor::Parts PartsFor(const Plan& plan, double timeout_s);
  std::unique_ptr<BoundPlan> MakeExecutor(Executor::Parts parts);

  Parts parts_;
  std::vector<int> cores_;  // of this rank's blocks; empty: any
  std::array<Team, kLanes> teams_;
  std::unique_ptr<LaneThread> lane_thread_;  // from the first plan on that needs it
};

/// Where block 0, 1, ... of a rank run: its own core first, then those that no rank has, then
/// everybody's.
std::vector<int> CoresOfBlocks(const std::vector<int>& cores, int local_rank, int local_ranks);

/// By rank of the machine: whether it may need a core of `local_rank`, each with so many blocks, to
/// get further. Where threads are more than cores and not pinned, all may.
std::vector<unsigned char> SharingCores(const std::vector<int>& cores, int local_rank,
                                        int local_ranks, int blocks, bool pin);

/// A HostRank at `place`: a MakeRank.
absl::StatusOr<std::unique_ptr<Rank>> MakeHostRank(RankPlace place);

}  // namespace coconet

#endif  // COCONET_RUNTIME_HOST_HOST_RANK_H_
