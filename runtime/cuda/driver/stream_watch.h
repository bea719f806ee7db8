#pragma once

#include <array>
#include <chrono>
#include <vector>

#include "absl/status/status.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/plan.h"

namespace coconet {

/// Finds the library collective that does not end, in runs of a plan several of which are in
/// flight. Unlike waits in kernels, collectives have no deadline of their own.
class StreamWatch {
 public:
  /// A collective of the plan, in step order, with events recorded before and after it: by run,
  /// modulo the most runs in flight.
  struct Watched {
    int step = 0, lane = 0;
    std::vector<CUevent> begun = {}, ended = {};
  };
  StreamWatch(const DriverApi& driver, std::vector<Watched> all, double timeout_s)
      : driver_(driver), all_(std::move(all)), timeout_(timeout_s) {}

  bool empty() const { return all_.empty(); }
  /// Begins a run; the run whose events it reuses has ended.
  void BeginRun();
  /// The index of the events that the next collective records.
  size_t slot() const { return SlotOf(enqueued_); }
  /// Counts the next collective as enqueued.
  void Enqueued() { ++enqueued_; }
  /// DeadlineExceeded once a collective has been in progress for the timeout, counted from the call
  /// of Look that first saw it.
  absl::Status Look();
  /// The step of a collective in progress; -1: none.
  int UnderWay();

 private:
  using Clock = std::chrono::steady_clock;
  bool Done(CUevent event) const { return driver_.EventQuery(event) != CUDA_ERROR_NOT_READY; }
  // Collectives are numbered in the order in which they are enqueued, over all runs.
  const Watched& At(size_t number) const { return all_[number % all_.size()]; }
  size_t SlotOf(size_t number) const { return number / all_.size() % all_[0].ended.size(); }
  /// The lane's first collective that is enqueued and not done, if it has begun; else null.
  const Watched* Current(int lane);

  const DriverApi& driver_;
  std::vector<Watched> all_;
  std::chrono::duration<double> timeout_;
  size_t enqueued_ = 0;
  std::array<size_t, kLanes> first_ = {};  // by lane: all earlier ones are done or of another lane
  /// When the current collective was first seen in progress; the clock's epoch: not yet.
  std::array<Clock::time_point, kLanes> seen_ = {};
};

}  // namespace coconet
