#ifndef COCONET_RUNTIME_NODE_LANES_H_
#define COCONET_RUNTIME_NODE_LANES_H_

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "runtime/plan.h"

namespace coconet {

/// The steps of a plan by lane, in their order.
struct LaneOrder {
  struct Entry {
    int step = 0;
    unsigned awaits =
        0;  // so many steps of the other lane, its first ones, are done before this one begins
    bool operator==(const Entry&) const = default;
  };
  std::array<std::vector<Entry>, kLanes> of;
};

/// OK when every step is of a lane that exists, and comes after earlier ones only; so lanes never
/// wait in a circle.
absl::Status CheckLanes(const Plan& plan);
/// Requires CheckLanes.
LaneOrder OrderOf(const Plan& plan);
bool UsesLane(const Plan& plan, int lane);

/// The thread of a rank's lane 1, which communicates. It sleeps whenever it has nothing to do, and
/// is prompt when there is (wait.h).
class LaneThread {
 public:
  /// The thread runs on any of `cores`; empty: wherever the system likes.
  explicit LaneThread(std::vector<int> cores);
  ~LaneThread();
  LaneThread(const LaneThread&) = delete;
  LaneThread& operator=(const LaneThread&) = delete;

  /// Begins work(argument). Requires that what was begun before is finished.
  void Start(void (*work)(void*), void* argument);
  /// Returns when it is finished, having polled `spins` times before it sleeps.
  void Finish(unsigned spins) const;

 private:
  void Loop();

  void (*work_)(void*) = nullptr;  // null in the last job: go home
  void* argument_ = nullptr;
  unsigned started_ = 0;
  alignas(64) std::atomic<unsigned> job_{0};
  alignas(64) std::atomic<unsigned> done_{0};
  std::thread thread_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_NODE_LANES_H_
