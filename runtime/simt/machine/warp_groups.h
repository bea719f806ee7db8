#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/simt/machine/access_checker.h"
#include "runtime/simt/machine/sums_in_flight.h"
#include "runtime/simt/memory/simt_memory.h"
#include "runtime/simt/threads/block.h"
#include "runtime/simt/threads/reporter.h"
#include "runtime/simt/threads/scheduler.h"

namespace coconet {

/// Matrix products by warp groups (PTX ISA, wgmma). All threads of a warp, for a product all of a
/// warp group, come to the same instruction of the same line. A product reads its operands by the
/// asynchronous proxy at any time before a warp has awaited it, and for each warp all of them; its
/// sums are executed in order. What a warp has awaited happened before what its threads do then.
/// Also the registers that warp groups of a block give each other.
class WarpGroups {
 public:
  WarpGroups(SimtMemory& memory, SimtScheduler& scheduler, AccessChecker& checker,
             Reporter& reporter)
      : memory_(memory),
        scheduler_(scheduler),
        checker_(checker),
        reporter_(reporter),
        sums_(reporter) {}

  /// Begins a product of the thread's warp group, whose sums are at `sums` on the thread's stack.
  void Multiply(SimtThread& thread, const SimtProduct& product, float* sums, const void* at);
  void Fence(SimtThread& thread, const void* at);
  /// Makes the warp's products since the last call a group.
  void CloseGroup(SimtThread& thread, const void* at);
  /// Waits for all groups of the warp but the last `open`.
  void Await(SimtThread& thread, int open, const void* at);
  /// Sets the registers of the warp group's threads (PTX ISA, setmaxnreg): fewer, or more once
  /// others have given up enough.
  void SetRegisters(SimtThread& thread, int registers, bool raises, const void* at);
  /// Sometimes lets a product read its operands.
  void ReadSome();

  SumsInFlight& sums() { return sums_; }
  /// Reports what an ended thread did not await, and threads that wait for it.
  void CheckNone(const SimtThread& thread);
  /// Instructions that threads came to so far.
  uint64_t arrivals() const { return arrivals_; }

 private:
  /// Waits until all threads of the warp, or of the warp group, have come to this instruction. The
  /// last one calls finish() before any goes on.
  template <class F>
  void Meet(SimtThread& thread, const char* what, bool whole_group, const void* at, F&& finish);
  void CheckMeeting(SimtThread& thread, const Gathering& gathering, const char* what,
                    bool whole_group, const void* at);
  void CheckOperand(SimtThread& thread, const char* name, const SimtOperand& operand,
                    const void* at);
  /// The last thread of the warp group begins the product that all have come to.
  void Issue(SimtThread& thread, const void* at);
  /// The reads of the thread's warp.
  void CheckReads(SimtThread& thread, ProductInFlight& product);
  void EndReads(const SimtThread& thread, const ProductInFlight& product);
  void Read(ProductInFlight& product);
  void Execute(SimtBlock& block, int group, ProductInFlight& product);
  void EndProducts(SimtThread& thread, int open);
  void CheckRegisters(SimtThread& thread, int registers, bool raises, const void* at);
  /// Gives registers to the block's warp groups that wait for them, where there are enough.
  void GrantRegisters(SimtBlock& block);

  SimtMemory& memory_;
  SimtScheduler& scheduler_;
  AccessChecker& checker_;
  Reporter& reporter_;
  SumsInFlight sums_;
  std::vector<ProductInFlight*> unread_;
  uint64_t arrivals_ = 0;
};

}  // namespace coconet
