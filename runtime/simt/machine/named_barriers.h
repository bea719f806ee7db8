#pragma once

#include <cstdint>

#include "runtime/simt/machine/memory_model.h"
#include "runtime/simt/threads/block.h"
#include "runtime/simt/threads/reporter.h"
#include "runtime/simt/threads/scheduler.h"

namespace coconet {

/// Barriers of parts of a block (PTX ISA, bar.sync with a count of threads). They count warps, all
/// of whose threads come to the same line.
class NamedBarriers {
 public:
  NamedBarriers(SimtScheduler& scheduler, StoreBuffers& stores, Reporter& reporter)
      : scheduler_(scheduler), stores_(stores), reporter_(reporter) {}

  /// Returns when warps of so many threads have come to the barrier of that number.
  void Sync(SimtThread& thread, int number, int threads, const void* at);
  /// Reports a barrier that cannot be complete without a thread that has ended.
  void CheckNoneWaits(const SimtThread& thread);
  /// Barriers that threads came to so far.
  uint64_t arrivals() const { return arrivals_; }

 private:
  void CheckSync(SimtThread& thread, int number, int threads, const void* at);
  void CheckWarp(SimtThread& thread, int number, const void* at);
  void Finish(SimtBlock& block, NamedBarrier& barrier);

  SimtScheduler& scheduler_;
  StoreBuffers& stores_;
  Reporter& reporter_;
  uint64_t arrivals_ = 0;
};

}  // namespace coconet
