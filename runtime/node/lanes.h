#pragma once

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/plan.h"

namespace coconet {

/// The steps of a plan by lane, in plan order.
struct LaneOrder {
  struct Entry {
    int step = 0;
    unsigned awaits = 0;  // the step begins after the first `awaits` steps of the other lane
    /// For lane 0 with `awaits` 0: how many of lane 1's last steps of the previous run may still be
    /// unfinished when the step begins.
    unsigned pending = 0;
    bool operator==(const Entry&) const = default;
  };
  std::array<std::vector<Entry>, kLanes> of;
};

/// OK when every step's lane exists, `after` names earlier steps only, so that lanes cannot
/// deadlock, and Plan::outlasting is as it says; else InvalidArgument.
absl::Status CheckLanes(const Plan& plan);
/// Requires CheckLanes.
LaneOrder OrderOf(const Plan& plan);
bool UsesLane(const Plan& plan, int lane);
/// How many entries of a lane, from `first` on, are AllToAlls of one group, or AllReduces of one
/// group, dtype and operation, that a library may do together: none waits for a later step of the
/// other lane than the first does, and none reads or writes what another writes. 0 if the first is
/// another step.
size_t StepsTogether(const Plan& plan, absl::Span<const LaneOrder::Entry> lane, size_t first);

/// The thread of a rank's lane 1, for communication. Sleeps while idle; prompt otherwise (wait.h).
class LaneThread {
 public:
  /// Runs on any of `cores`; empty: on any core.
  explicit LaneThread(std::vector<int> cores);
  ~LaneThread();

  /// Begins work(argument) when earlier work is finished, for which it waits.
  void Start(void (*work)(void*), void* argument);
  /// Waits until all work is finished: polls `spins` times, then sleeps.
  void Finish(unsigned spins) const;

 private:
  void Loop();

  void (*work_)(void*) = nullptr;  // null: the thread ends
  void* argument_ = nullptr;
  unsigned started_ = 0;
  alignas(64) std::atomic<unsigned> job_{0};
  alignas(64) std::atomic<unsigned> done_{0};
  std::thread thread_;
};

}  // namespace coconet
