#ifndef COCONET_RUNTIME_CUDA_DRIVER_STREAM_WATCH_H_
#define COCONET_RUNTIME_CUDA_DRIVER_STREAM_WATCH_H_

#include <array>
#include <chrono>
#include <vector>

#include "absl/status/status.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/plan.h"

namespace coconet {

/// Finds out which library collective of a run keeps its stream: it has no deadline of its own, as
/// kernels' waits have.
class StreamWatch {
 public:
  /// A collective of the plan, in the order of steps; the events are recorded before and after it.
  struct Watched {
    int step = 0, lane = 0;
    CUevent begun = nullptr, ended = nullptr;
  };
  StreamWatch(const DriverApi& driver, std::vector<Watched> all, double timeout_s)
      : driver_(driver), all_(std::move(all)), timeout_(timeout_s) {}

  bool empty() const { return all_.empty(); }
  /// A run begins: nothing is enqueued.
  void Reset();
  /// The next one is.
  void Enqueued() { ++enqueued_; }
  /// DeadlineExceeded once one has been under way for that long, as far as previous calls have seen
  /// it.
  absl::Status Look();
  /// The step of one that is under way; -1: none is.
  int UnderWay();

 private:
  using Clock = std::chrono::steady_clock;
  bool Done(CUevent event) const { return driver_.EventQuery(event) != CUDA_ERROR_NOT_READY; }
  /// The first of the lane that is enqueued and not done, if it has begun.
  const Watched* Current(int lane);

  const DriverApi& driver_;
  std::vector<Watched> all_;
  std::chrono::duration<double> timeout_;
  size_t enqueued_ = 0;
  std::array<size_t, kLanes> first_ = {};  // by lane: those before it are done, or of another lane
  std::array<Clock::time_point, kLanes> seen_ =
      {};  // since when it has been under way; epoch: it has not
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_DRIVER_STREAM_WATCH_H_
