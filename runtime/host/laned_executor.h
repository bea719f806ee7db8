#ifndef COCONET_RUNTIME_HOST_LANED_EXECUTOR_H_
#define COCONET_RUNTIME_HOST_LANED_EXECUTOR_H_

#include <array>
#include <atomic>

#include "runtime/host/executor.h"
#include "runtime/node/lanes.h"

namespace coconet {

/// A bound plan of two lanes: lane 0 runs on the thread that calls Run, lane 1 on `thread`. A step
/// waits for those steps of the other lane that it needs.
class LanedExecutor final : public Executor {
 public:
  LanedExecutor(Parts parts, LaneThread* thread);

  absl::Status Run() override;

 private:
  struct alignas(64) Progress {
    std::atomic<unsigned> done{0};  // steps that the lane has done in this Run
  };
  void RunLane(int lane);
  void Fail(int lane, int step, const absl::Status& why);
  bool MayBeInACollective(int lane) const;

  LaneThread* thread_;
  LaneOrder order_;
  /// By lane: the number of steps up to its last library collective.
  std::array<unsigned, kLanes> collectives_ = {};
  std::array<Progress, kLanes> progress_;
  std::atomic<bool> failed_{false};
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_HOST_LANED_EXECUTOR_H_
