#ifndef COCONET_RUNTIME_HOST_EXECUTOR_H_
#define COCONET_RUNTIME_HOST_EXECUTOR_H_

#include <array>
#include <memory>
#include <variant>
#include <vector>

#include "runtime/host/gemm.h"
#include "runtime/host/team.h"
#include "runtime/node/control.h"
#include "runtime/rank.h"

namespace coconet {

/// Steps of a plan with everything looked up.
struct KernelCall {
  HostKernel kernel;
  const Word* params;
  int blocks;
  bool waits;  // it may come back because a wait failed
  Team* team;
};
struct CollectiveCall {
  CollectiveStep step;
  const void* in;
  void* out;
  Communicator* library;  // of the step's lane and group
};
struct GemmCall {
  std::unique_ptr<Gemm> gemm;
  int threads;
  Team* team;
};
using Call = std::variant<KernelCall, CollectiveCall, GemmCall>;

/// A bound plan of the host backend, all of one lane: one loop over its calls.
class Executor : public BoundPlan {
 public:
  struct Parts {
    Plan plan;
    int rank = 0;       // in the world
    Members node = {};  // whose memory kernels reach
    Members stopping =
        {};  // those that give up together, wherever kernels of the plan may wait for each other
    Board* board = nullptr;
    WaitTerms terms;         // of the team
    WaitTerms kernel_terms;  // of kernels, for ranks with a core of their own
    std::vector<unsigned char> near =
        {};  // by rank of the node, and beside: shares a core with this one
    std::array<Team*, kLanes> teams = {};                                   // by lane
    std::array<std::array<Communicator*, kGroups>, kLanes> libraries = {};  // by lane and group
    std::unique_ptr<Memory> shared = nullptr;  // the control first, then symmetric sync buffers
    std::unique_ptr<Memory> local = nullptr;   // the other sync buffers
    std::vector<Call> calls = {};              // one a step
    std::vector<Word> params = {};             // what the calls point into
    std::vector<std::vector<void*>> multicast =
        {};  // by buffer: its addresses on the node, which stand for one of a switch's
  };
  /// Opens this rank's control. The caller makes sure that no rank runs before all have opened
  /// theirs.
  explicit Executor(Parts parts);

  absl::Status Run() override;

 protected:
  absl::Status Execute(int step) const {
    return std::visit([&](const auto& call) { return Execute(step, call); }, parts_.calls[step]);
  }
  /// `step` failed on this rank: its peers, and its other lane, shall give up too.
  void StopOthers(int step);

  Parts parts_;
  absl::Status first_error_;

 private:
  absl::Status Execute(int step, const KernelCall& call) const;
  absl::Status Execute(int step, const CollectiveCall& call) const;
  absl::Status Execute(int step, const GemmCall& call) const;
  HostControl* ControlOf(int rank) const {
    return static_cast<HostControl*>(parts_.shared->peer(rank));
  }
  /// A wait in a kernel of `step` failed, here or on a peer.
  absl::Status GaveUp(int step) const;

  HostControl* control_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_HOST_EXECUTOR_H_
