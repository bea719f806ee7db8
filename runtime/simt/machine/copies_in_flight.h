#pragma once

#include <cstddef>

#include "runtime/simt/machine/access_checker.h"
#include "runtime/simt/machine/block.h"
#include "runtime/simt/machine/reporter.h"
#include "runtime/simt/machine/scheduler.h"
#include "runtime/simt/memory/simt_memory.h"

namespace coconet {

/// Asynchronous copies from and to shared memory. A copy reads at once or as late as it may, and
/// stores as late as it may. Until its thread awaits it, its accesses are ordered with no others,
/// also not with those of its own thread.
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
  /// A proxy fence: bulk copies see what the thread has written.
  static void Fence(SimtThread& thread);
  /// Of a thread that has ended: reports copies that it did not await.
  void CheckNone(SimtThread& thread);

 private:
  void Begin(SimtThread& thread, SimtThread::Copies& copies, CopyInFlight copy);
  static void Read(CopyInFlight& copy);
  /// The copy's accesses of these bytes become the thread's.
  void EndAccess(const SimtThread& thread, const CopyInFlight& copy, const char* p, size_t bytes);

  SimtMemory& memory_;
  SimtScheduler& scheduler_;
  AccessChecker& checker_;
  Reporter& reporter_;
};

}  // namespace coconet
