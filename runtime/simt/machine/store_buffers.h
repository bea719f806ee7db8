#ifndef COCONET_RUNTIME_SIMT_MACHINE_STORE_BUFFERS_H_
#define COCONET_RUNTIME_SIMT_MACHINE_STORE_BUFFERS_H_

#include <vector>

#include "runtime/simt/machine/block.h"
#include "runtime/simt/machine/scheduler.h"
#include "runtime/simt/memory/simt_memory.h"

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
  /// Makes all stores of all threads visible. False where no buffer was in use.
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

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_MACHINE_STORE_BUFFERS_H_
