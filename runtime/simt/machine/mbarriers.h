#pragma once

#include "runtime/simt/machine/access_checker.h"
#include "runtime/simt/machine/copies_in_flight.h"
#include "runtime/simt/memory/simt_memory.h"
#include "runtime/simt/threads/block.h"
#include "runtime/simt/threads/reporter.h"
#include "runtime/simt/threads/scheduler.h"

namespace coconet {

/// Barriers in shared memory that count arrivals and the bytes of bulk copies, phase by phase (PTX
/// ISA, mbarrier). Operations on them are accesses of the memory model; an arrival releases, and a
/// wait that sees a phase end acquires what was released in that phase.
class Mbarriers {
 public:
  Mbarriers(SimtMemory& memory, SimtScheduler& scheduler, AccessChecker& checker,
            CopiesInFlight& copies, Reporter& reporter)
      : memory_(memory),
        scheduler_(scheduler),
        checker_(checker),
        copies_(copies),
        reporter_(reporter) {}

  /// `arrivals`: of each phase.
  void Init(SimtThread& thread, const char* p, int arrivals, const void* at);
  /// A fence for the barriers that the thread has initialised: bulk copies see them.
  static void Fence(SimtThread& thread);
  /// One arrival, which expects so many bytes more.
  void Arrive(SimtThread& thread, const char* p, int bytes, const void* at);
  /// Whether the current phase's predecessor has this parity, so that a phase of it is over. May
  /// also return false for no reason.
  bool TryWait(SimtThread& thread, const char* p, unsigned parity, const void* at);
  /// Begins a bulk copy that completes as bytes of the barrier.
  void Load(SimtThread& thread, char* to, const char* from, int bytes, const char* p,
            const void* at);
  /// The same for a box of a matrix.
  void LoadBox(SimtThread& thread, char* to, const void* map, const SimtBoxAt& box, const char* p,
               const void* at);

 private:
  /// The barrier there. Abandons the thread if there is none, or if its initialisation is not
  /// ordered before.
  SimtBarrier& Find(SimtThread& thread, const char* p, bool writes, const void* at);
  void CheckInitFence(SimtThread& thread, const SimtBarrier& barrier, const void* at);
  void Sleep(SimtThread& thread, const char* p, const SimtBarrier& barrier, const void* at);

  SimtMemory& memory_;
  SimtScheduler& scheduler_;
  AccessChecker& checker_;
  CopiesInFlight& copies_;
  Reporter& reporter_;
};

}  // namespace coconet
