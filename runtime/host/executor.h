#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <variant>
#include <vector>

#include "runtime/arguments.h"
#include "runtime/control/kernel_control.h"
#include "runtime/host/gemm.h"
#include "runtime/host/team.h"
#include "runtime/node/lanes.h"
#include "runtime/node/sync_pool.h"
#include "runtime/rank.h"

namespace coconet {

/// A step of a plan with all its names resolved.
struct KernelCall {
  HostKernel kernel;
  const Word* params;
  int blocks;
  bool waits;  // it may return because a wait failed
  Team* team;
};
struct CollectiveCall {
  CollectiveStep step;
  const void* in;
  void* out;
  Communicator* library;                                  // of the step's lane and group
  const int32_t *leaving = nullptr, *arriving = nullptr;  // with step.rows
  // If this is the first of several calls that are done together: all of them.
  absl::Span<const AllToAllCall> all_to_alls = {};
  absl::Span<const AllReduceCall> all_reduces = {};
  size_t together() const { return std::max(all_to_alls.size(), all_reduces.size()); }
};
struct GemmCall {
  std::unique_ptr<Gemm> gemm;
  int threads;
  Team* team;
};
using Call = std::variant<KernelCall, CollectiveCall, GemmCall>;

/// A bound plan of the host backend with one lane: Run loops over its calls.
class Executor : public BoundPlan {
 public:
  struct Parts {
    Plan plan;
    int rank = 0;       // world rank
    Members node = {};  // the ranks whose memory kernels address
    /// The ranks that give up together: kernels of the plan may wait for each other among them.
    Members stopping = {};
    Board* board = nullptr;
    WaitTerms terms;         // of the team
    WaitTerms kernel_terms;  // of kernels, for ranks with a core of their own
    /// Control::near: by number in the node, then Beside; true for peers that share a core.
    std::vector<unsigned char> near = {};
    std::array<Team*, kLanes> teams = {};                                   // by lane
    std::array<std::array<Communicator*, kGroups>, kLanes> libraries = {};  // by lane and group
    std::shared_ptr<SyncSet> sync = nullptr;  // `shared` begins with the Control
    std::vector<Call> calls = {};             // one per step
    LineWords params = {};                    // argument blocks that the calls point into
    /// By buffer: its addresses on the node's ranks, which stand in for a multicast address.
    std::vector<std::vector<void*>> multicast = {};
  };
  /// Opens this rank's Control. The caller must not let any rank run before all have opened theirs.
  explicit Executor(Parts parts);
  ~Executor() override {
    if (!first_error_.ok()) parts_.sync->reusable = false;
  }

  absl::Status Run() override;
  void DelayWaits(int waits, int64_t ns) override;
  absl::Status CheckSyncGuards() const override;
  absl::StatusOr<std::vector<StepSpan>> Trace() override;

 protected:
  /// The number of steps of the lane, from this one on, that one Execute does.
  int StepsAt(int step) const;
  absl::Status Execute(int step) {
    if (!spans_.empty()) return ExecuteTimed(step);
    return std::visit([&](const auto& call) { return Execute(step, call); }, parts_.calls[step]);
  }
  /// Reports that `step` failed on this rank, so that its peers and its other lane give up.
  void StopOthers(int step);

  Parts parts_;
  absl::Status first_error_;

 private:
  /// Finds the steps of a lane that a library does together.
  void JoinSteps();
  absl::Status ExecuteTimed(int step);
  absl::Status Execute(int step, const KernelCall& call) const;
  absl::Status Execute(int step, const CollectiveCall& call) const;
  absl::Status Execute(int step, const GemmCall& call) const;
  HostControl* ControlOf(int rank) const {
    return static_cast<HostControl*>(parts_.sync->shared->peer(rank));
  }
  /// The error of a kernel step in which a wait failed, here or on a peer.
  absl::Status GaveUp(int step) const;

  HostControl* control_;
  std::vector<StepSpan> spans_;  // by step, while a run is traced
  std::chrono::steady_clock::time_point trace_begun_;
  std::vector<AllToAllCall> all_to_alls_;  // by lane, in order
  std::vector<AllReduceCall> all_reduces_;
};

/// A bound plan of two lanes: lane 0 runs on the thread that calls Run, lane 1 on `thread`. A step
/// waits for those steps of the other lane that it needs. Lane 1 may be a run behind (Advance).
class LanedExecutor final : public Executor {
 public:
  LanedExecutor(Parts parts, LaneThread* thread);
  ~LanedExecutor() override;

  absl::Status Run() override;
  absl::Status Advance() override;
  absl::Status Wait() override;

 private:
  struct alignas(64) Progress {
    std::atomic<unsigned> done{0};  // steps that the lane has done in all runs
    unsigned runs = 0;              // that the lane has begun; its own thread's
  };
  void RunLane(int lane);
  void Fail(int lane, int step, const absl::Status& why);
  bool MayBeInACollective(int lane) const;
  unsigned StepsOn(int lane) const { return static_cast<unsigned>(order_.of[lane].size()); }

  LaneThread* thread_;
  LaneOrder order_;
  /// By lane: the number of steps up to its last library collective.
  std::array<unsigned, kLanes> collectives_ = {};
  std::array<Progress, kLanes> progress_;
  std::atomic<unsigned> begun_{0};  // runs
  std::atomic<bool> failed_{false};
};

}  // namespace coconet
