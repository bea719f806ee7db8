#pragma once

#include <cstdint>
#include <vector>

#include "runtime/simt/machine/access_checker.h"
#include "runtime/simt/memory/clock.h"
#include "runtime/simt/memory/simt_memory.h"
#include "runtime/simt/threads/block.h"
#include "runtime/simt/threads/scheduler.h"

namespace coconet {

/// Delays stores of the memory model: each waits in its thread's buffer (SimtThread::pending)
/// before other threads see it. A release becomes visible after all stores before it, stores to
/// the same bytes in order, others in any order.
class StoreBuffers {
 public:
  StoreBuffers(SimtMemory& memory, SimtScheduler& scheduler)
      : memory_(memory), scheduler_(scheduler) {}

  /// Appends to the thread's buffer; a full one makes a store visible first.
  void Add(SimtThread& thread, PendingStore store);
  void MakeAllVisible(SimtThread& thread);
  /// Sometimes makes a store of some thread visible.
  void DrainSome();
  /// Makes all stores of all threads visible. False if no buffer was in use.
  bool DrainAll();
  bool empty() const { return storing_.empty(); }

 private:
  void MakeOneVisible(SimtThread& thread);
  void MakeVisible(const PendingStore& store);

  SimtMemory& memory_;
  SimtScheduler& scheduler_;
  /// Contains each thread with a pending store; some twice, and some whose stores are visible by
  /// now.
  std::vector<SimtThread*> storing_;
};

/// Loads, stores and exchanges of the memory model. Each lets other threads run first or after; an
/// acquire that reads what a release wrote joins the releaser's clock; a thread that repeats a load
/// with the same value sleeps until the word changes.
class MemoryModel {
 public:
  /// `weak`: stores are delayed (StoreBuffers).
  MemoryModel(bool weak, SimtMemory& memory, SimtScheduler& scheduler, AccessChecker& checker,
              StoreBuffers& stores)
      : weak_(weak), memory_(memory), scheduler_(scheduler), checker_(checker), stores_(stores) {}

  /// Accesses of `count` words of 4 or 8 bytes each, as in SimtCalls.
  void Load(SimtThread& thread, const char* from, int bytes, int count, bool acquires,
            unsigned long long* values, const void* at);
  void Store(SimtThread& thread, char* to, int bytes, int count, bool releases,
             const unsigned long long* values, const void* at);
  /// Returns the old value.
  unsigned Exchange(SimtThread& thread, unsigned* p, unsigned value, const void* at);

  /// What the thread has done so far, for a thread that acquires it.
  static Released Release(SimtThread& thread);
  static void Acquire(SimtThread& thread, const Released& released);
  /// Orders what these threads of a block, at least one, have done so far before what each does
  /// next.
  static void Join(const std::vector<SimtThread*>& threads);

 private:
  uint64_t LoadOne(SimtThread& thread, SimtBuffer* buffer, const char* p, int bytes, bool acquires);
  /// Returns when one of the words that the thread polls changes, or it is told to look again.
  void Spin(SimtThread& thread, const void* at);

  const bool weak_;
  SimtMemory& memory_;
  SimtScheduler& scheduler_;
  AccessChecker& checker_;
  StoreBuffers& stores_;
};

}  // namespace coconet
