#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/simt/memory/shadow.h"
#include "runtime/simt/memory/simt_memory.h"
#include "runtime/simt/threads/block.h"
#include "runtime/simt/threads/fiber.h"
#include "runtime/simt/threads/reporter.h"
#include "runtime/simt/threads/scheduler.h"

namespace coconet {

/// Launches that have not ended, and their blocks while they are resident: gives each block a slot,
/// each thread a stack, and each `__shared__` array memory.
class ResidentBlocks {
 public:
  /// `most`: resident blocks per rank; 0: as many as there are slots for.
  ResidentBlocks(int most, int ranks, SimtMemory& memory, SlotTable& slots,
                 SimtScheduler& scheduler, Reporter& reporter)
      : most_(most),
        memory_(memory),
        slots_(slots),
        scheduler_(scheduler),
        reporter_(reporter),
        resident_(ranks) {}

  /// Starts the blocks for which there is room; the others start when resident ones end.
  void Launch(std::shared_ptr<SimtLaunch> launch);
  /// Takes back the stack of a thread whose fiber has ended, and leaves the thread to its block.
  void EndThread(SimtThread& thread);
  /// Ends a block whose threads have all ended. Calls launch->done() behind the last block of a
  /// launch.
  void EndBlock(SimtBlock& block);
  /// The array of the thread's block for this place in the source, made on first use.
  void* SharedArray(SimtThread& thread, const void* place, size_t bytes, size_t alignment);
  /// The dynamic shared memory of the thread's block, aligned to 1024 bytes and not better.
  void* DynamicShared(SimtThread& thread);

  const std::deque<std::shared_ptr<SimtLaunch>>& launches() const { return launches_; }
  const std::vector<std::unique_ptr<SimtBlock>>& blocks() const { return blocks_; }
  int resident(int rank) const { return resident_[rank]; }
  int live_threads() const { return live_threads_; }

 private:
  static constexpr int kSlotsOfOthers = 512;  // reserved for streams and host threads

  bool HasRoom(const SimtLaunch& launch) const;
  void StartBlocks();
  void StartBlock(const std::shared_ptr<SimtLaunch>& launch);
  /// False if there is no stack.
  bool StartThread(SimtBlock& block, int index, int starved_warp);
  SimtThread& TakeThread();
  /// Uninitialised memory of the thread's block.
  SimtBuffer* TakeShared(SimtThread& thread, size_t bytes, size_t alignment);

  const int most_;
  SimtMemory& memory_;
  SlotTable& slots_;
  SimtScheduler& scheduler_;
  Reporter& reporter_;
  StackPool stacks_;
  std::deque<std::shared_ptr<SimtLaunch>> launches_;
  std::vector<std::unique_ptr<SimtBlock>> blocks_;
  std::vector<int> resident_;                         // blocks by rank
  std::vector<std::unique_ptr<SimtThread>> threads_;  // of all blocks so far
  std::vector<SimtThread*> free_threads_;
  std::vector<SimtBuffer*> free_shared_;
  int live_threads_ = 0;
};

}  // namespace coconet
