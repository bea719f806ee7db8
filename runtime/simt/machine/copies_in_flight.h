#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/simt/machine/access_checker.h"
#include "runtime/simt/machine/block.h"
#include "runtime/simt/machine/reporter.h"
#include "runtime/simt/machine/scheduler.h"
#include "runtime/simt/memory/simt_memory.h"

namespace coconet {

/// Asynchronous copies from and to shared memory. Those that threads await by group read at once or
/// as late as they may, and store as late as they may. Bulk copies to shared memory complete at any
/// time, in parts, as bytes of a barrier. Until a thread has awaited a copy, its accesses are
/// ordered with no others, also not with those of its own thread.
class CopiesInFlight {
 public:
  CopiesInFlight(SimtMemory& memory, SimtScheduler& scheduler, AccessChecker& checker,
                 Reporter& reporter)
      : memory_(memory), scheduler_(scheduler), checker_(checker), reporter_(reporter) {}

  /// From shared memory, in bulk.
  void BeginBulk(SimtThread& thread, char* to, const char* from, size_t bytes, const void* at);
  /// To shared memory, in pieces of 16 bytes: those beyond `bytes` become zero.
  void BeginAsync(SimtThread& thread, char* to, const char* from, size_t bytes, const void* at);
  /// Ends the reads, and where `stores` the stores, of all closed groups but the last `open`.
  void Await(SimtThread& thread, SimtThread::Copies& copies, int open, bool stores);
  /// A proxy fence: bulk copies see what the thread has written, and what it knows of.
  static void Fence(SimtThread& thread);

  /// To shared memory, in bulk, as bytes of `barrier`, which is at `barrier_at`.
  void BeginLoad(SimtThread& thread, char* to, const char* from, size_t bytes,
                 const char* barrier_at, SimtBarrier& barrier, const void* at);
  /// Sometimes completes a part of some load.
  void LoadSome();
  /// Completes a part of some load. False where none is going on.
  bool LoadOne();
  bool any_loading() const { return loading_ > 0; }
  /// The thread has seen that the barrier's phase is over: the loads of it, and of phases before,
  /// become its accesses. False where there was none that no thread had seen.
  bool EndLoads(const SimtThread& thread, const SimtBarrier& barrier, uint64_t phase);

  /// Of a thread that has ended: reports copies that it did not await.
  void CheckNone(SimtThread& thread);
  /// Of a block whose threads have ended: reports loads that no thread awaited.
  void CheckNoLoads(const SimtBlock& block);

 private:
  /// `number`: of the copy's group, which its epoch tells.
  void Begin(SimtThread& thread, bool bulk, int number, CopyInFlight& copy);
  static void Read(CopyInFlight& copy);
  void Load(BulkLoad& load);
  /// The copy's accesses of these bytes become the thread's.
  void EndAccess(const SimtThread& thread, const CopyInFlight& copy, const char* p, size_t bytes);
  void ReportUnfinished(const SimtThread& thread, const CopyInFlight& copy);

  SimtMemory& memory_;
  SimtScheduler& scheduler_;
  AccessChecker& checker_;
  Reporter& reporter_;
  std::vector<BulkLoad> loads_;  // of all blocks, that no thread has awaited
  size_t loading_ = 0;           // of these, those that go on
};

}  // namespace coconet
