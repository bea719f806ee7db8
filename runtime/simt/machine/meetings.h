#pragma once

#include <cstdint>
#include <string>

#include "runtime/simt/machine/memory_model.h"
#include "runtime/simt/threads/block.h"
#include "runtime/simt/threads/reporter.h"
#include "runtime/simt/threads/scheduler.h"

namespace coconet {

/// Barriers of blocks and warps, shuffles and gathers of warps: threads wait until all have come.
class Meetings {
 public:
  Meetings(SimtScheduler& scheduler, StoreBuffers& stores, Reporter& reporter)
      : scheduler_(scheduler), stores_(stores), reporter_(reporter) {}

  /// Returns whether all threads of the block were `ok`. `votes`: the kind of barrier.
  bool Barrier(SimtThread& thread, bool votes, bool ok, const void* at);
  /// Returns the value of the lane `distance` higher; the own value beyond the warp.
  uint64_t ShuffleDown(SimtThread& thread, unsigned mask, uint64_t value, int distance,
                       const void* at);
  /// Copies `bytes` from `mine` of each thread of the warp to `all` of each.
  void Gather(SimtThread& thread, const void* mine, int bytes, void* all, const void* at);
  /// A barrier of the thread's warp.
  void SyncWarp(SimtThread& thread, const void* at);
  /// Reports a barrier where others wait for a thread that has ended.
  void CheckNoneWaits(const SimtThread& thread);
  /// Barriers, shuffles and gathers that threads came to so far.
  uint64_t arrivals() const { return arrivals_; }

 private:
  static constexpr int kSync = -1;

  void CheckBarrier(SimtThread& thread, bool votes, const void* at);
  void FinishBarrier(SimtBlock& block);
  /// Waits for the threads of the mask. `bytes`: per thread of a gather; 0: a shuffle; kSync: a
  /// barrier.
  void MeetWarp(SimtThread& thread, unsigned mask, int bytes, const void* at);
  /// What is wrong with the mask; "" if nothing is.
  std::string MaskMistake(const SimtThread& thread, unsigned mask) const;
  void FinishWarp(SimtBlock& block, int warp);
  void Wait(SimtThread& thread, SimtThread::State state);

  SimtScheduler& scheduler_;
  StoreBuffers& stores_;
  Reporter& reporter_;
  uint64_t arrivals_ = 0;
};

}  // namespace coconet
