#ifndef COCONET_RUNTIME_HOST_LANED_EXECUTOR_H_
#define COCONET_RUNTIME_HOST_LANED_EXECUTOR_H_

#include <array>
#include <atomic>

#include "runtime/host/executor.h"
#include "runtime/node/lanes.h"

namespace coconet {

/// A bound plan of two lanes: lane 0 on the thread that calls Run, lane 1 on `thread`, each in its
/// own order, and each stopping where it needs a step of the other.
class LanedExecutor final : public Executor {
 public:
  LanedExecutor(Parts parts, LaneThread* thread);

  absl::Status Run() override;

 private:
  struct alignas(64) Progress {
    std::atomic<unsigned> done{0};  // so many of the lane's steps, in this Run
  };
  void RunLane(int lane);
  void Fail(int lane, int step, const absl::Status& why);
  bool MayBeInACollective(int lane) const;

  LaneThread* thread_;
  LaneOrder order_;
  std::array<unsigned, kLanes> collectives_ =
      {};  // the lane's steps up to its last library collective
  std::array<Progress, kLanes> progress_;
  std::atomic<bool> failed_{false};
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_HOST_LANED_EXECUTOR_H_
