#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/simt/memory/clock.h"
#include "runtime/simt/memory/shadow.h"
#include "runtime/simt/memory/simt_memory.h"
#include "runtime/simt/threads/fiber.h"
#include "runtime/simt/threads/warp_group.h"
#include "runtime/simt_abi.h"

namespace coconet {

struct SimtBlock;
struct SimtThread;

/// A store of the memory model that only its thread sees yet.
struct PendingStore {
  char* to;
  uint64_t value;
  int bytes;
  bool releases;
  Released released;
};

/// An mbarrier in shared memory (PTX ISA, mbarrier). A phase is over when all its arrivals have
/// come and the bytes that they expect have been copied.
struct SimtBarrier {
  static constexpr int64_t kMostBytes = (1 << 20) - 1;  // that may be missing, or copied too early

  uint32_t arrivals = 0, pending = 0;  // of each phase; those that the current one still misses
  int64_t bytes = 0;                   // that it still misses
  uint64_t phase = 0;                  // number of the current one
  Epoch initialized = {};
  std::vector<Released> arrived = {};  // in the current phase
  std::vector<Released> passed = {};   // what a wait for the last phase acquires

  /// Ends the current phase if nothing is missing; returns whether it did.
  bool Advance() {
    if (pending > 0 || bytes != 0) return false;
    pending = arrivals;
    passed.swap(arrived);
    arrived.clear();
    ++phase;
    return true;
  }
};

/// An asynchronous copy from or to shared memory.
struct CopyInFlight {
  /// Bytes that lie together at both ends, with zeros around what is read.
  struct Stretch {
    char* to;
    const char* from;
    size_t bytes;     // that it reads
    size_t filled;    // that it writes
    size_t lead = 0;  // zeros before what is read
  };
  std::vector<Stretch> stretches;
  const void* at = nullptr;
  int group = 0;                // number in its thread
  std::vector<char> data = {};  // what it writes; empty: it has read nothing yet
  Epoch epoch = {};
  bool has_read = false;  // its thread has awaited the read
};

/// A part of a bulk copy to shared memory, which completes as bytes of a barrier.
struct BulkLoad {
  SimtThread* thread;
  CopyInFlight copy;
  const char* at;  // the barrier
  SimtBarrier* barrier;
  bool done = false;   // all is stored, and no wait has seen it
  uint64_t phase = 0;  // of the barrier when it was done
};

/// Loads of a thread since its last write, barrier or shuffle. A thread that loads the same value
/// from the same place again spins.
struct Polls {
  static constexpr int kMost = 64;
  struct Poll {
    const char* from;
    uint64_t value;
  };
  std::array<Poll, kMost> all;
  int count = 0;

  /// Whether the same load has been noted. Otherwise notes it; drops the earlier ones if the value
  /// differs, or if there are too many.
  bool Repeats(const char* from, uint64_t value) {
    for (int i = 0; i < count; ++i) {
      if (all[i].from != from) continue;
      if (all[i].value == value) return true;
      count = 0;
    }
    if (count == kMost) count = 0;
    all[count++] = {from, value};
    return false;
  }
};

/// A thread of a block. Lives as long as its machine, in one block after another, so that pointers
/// to threads that once waited for a word stay valid.
struct SimtThread {
  enum class State : uint8_t {
    kReady,
    kSpins,
    kAtBarrier,
    kAtNamedBarrier,
    kInShuffle,
    kGathers,
    kAwaitsRegisters,
    kEnded
  };

  SimtPlace place = {};
  SimtBlock* block = nullptr;
  char* stack = nullptr;
  Fiber fiber;
  State state = State::kReady;
  bool starved = false;
  size_t index = 0;     // in the scheduler's list of its state
  uint64_t ticket = 0;  // number of its last wait for words
  int looks = 0;        // loads left that do not count as spinning, after it was woken to look
  Agent agent;
  std::shared_ptr<Clock> learned;  // block->clock joined with what it acquired since the last
                                   // barrier; null: it acquired nothing
  Epoch fenced;                    // its last proxy fence
  std::vector<Epoch> fences;       // those since the block's last barrier, and one before it
  std::shared_ptr<const Clock> fenced_clock;  // what had happened before that fence
  Epoch fenced_barriers;                      // its last fence for barriers that it had initialised
  Polls polls;
  std::vector<PendingStore> pending;
  struct Copies {
    std::vector<CopyInFlight> ongoing;
    int closed = 0;  // groups
  };
  Copies bulk, async;
  int loads = 0;                         // parts of bulk copies to shared memory
  const SimtBarrier* barrier = nullptr;  // that it waits for
  SumsOfThread sums;
  float* product_sums = nullptr;         // of the product that it begins
  const Gathering* gathering = nullptr;  // that it waits for
  int named_barrier = 0;                 // that it waits at
  bool vote = false;                     // the result of its last barrier
  uint64_t shuffled = 0;                 // the result of its last shuffle
  const void* at = nullptr;              // where in the code it waits
  const unsigned* awaited = nullptr;     // the flag of its last note_wait
  unsigned epoch = 0;                    // and the flag's epoch that it waits for

  /// Lets other threads run. Called on the thread; returns when it is scheduled again.
  void Yield() { fiber.Stop(); }
  /// Called on the thread when the machine has ended: does not return.
  [[noreturn]] void Abandon() {
    while (true) fiber.Stop();
  }
};

/// A shuffle or gather that some threads of a warp have come to.
struct SimtWarp {
  unsigned mask = 0, arrived = 0;
  int bytes = 0;  // per thread of a gather; 0: a shuffle
  std::array<uint64_t, 32> values;
  std::array<int, 32> distances;
  std::array<const void*, 32> given;
  std::array<void*, 32> gathered;
};

/// A barrier of a part of a block, by its number. Whole warps come to it.
struct NamedBarrier {
  int threads = 0;                 // that it waits for
  int arrived = 0;                 // those of whole warps that have come, 32 a warp
  std::vector<SimtThread*> there;  // who came first is first
};

/// A launch of a kernel.
struct SimtLaunch {
  SimtKernel kernel = nullptr;
  std::string name;
  const void* params = nullptr;
  int blocks = 0, threads = 0;
  size_t shared_bytes = 0;             // dynamic, of a block
  int rank = 0;                        // of its device
  std::shared_ptr<const Clock> start;  // what happened before it
  Clock end;                           // what happened before its end
  std::function<void()> done;          // called when all blocks have ended
  int started = 0, ended = 0;          // blocks
  int starved = -1;                    // the block that the scheduler starves
};

/// A resident block.
struct SimtBlock {
  std::shared_ptr<SimtLaunch> launch;
  int index = 0;
  int slot = 0;
  uint32_t first = 0, generation = 0;  // of the slot: when the block started, and now
  std::shared_ptr<const Clock> clock;  // what happened before the current generation
  std::vector<SimtThread*> threads;    // owned by ResidentBlocks
  int live = 0;                        // threads that have not ended
  // The barrier that `arrived` threads have come to.
  int arrived = 0;
  bool votes = false, all_ok = true;
  const SimtThread* first_there = nullptr;
  std::vector<SimtWarp> warps;
  std::vector<SimtWarpGroup> groups;
  int free_registers = 0;                    // that warp groups have given up
  static constexpr int kNamedBarriers = 16;  // number 0 is the block's
  std::array<NamedBarrier, kNamedBarriers> named_barriers;
  std::vector<std::pair<const void*, SimtBuffer*>> shared;  // by place in the source
  SimtBuffer* dynamic =
      nullptr;  // holds the dynamic shared memory; null: no thread has asked for it
  std::map<const char*, SimtBarrier> barriers;  // by address

  /// Whether the buffer is shared memory of the block.
  bool Shares(const SimtBuffer* buffer) const {
    for (const auto& [place, own] : shared) {
      if (own == buffer) return true;
    }
    return buffer == dynamic && buffer != nullptr;
  }
  /// A thread that waits for an instruction which it executes with `thread`; null if none does.
  const SimtThread* WhoGathers(const SimtThread& thread) const {
    const SimtWarpGroup& group = groups[thread.place.thread / kGroupThreads];
    const Gathering& of_warp = group.of_warps[thread.place.thread / kWarpThreads % kGroupWarps];
    return group.gathering.arrived > 0 ? group.gathering.there
           : of_warp.arrived > 0       ? of_warp.there
                                       : nullptr;
  }
};

}  // namespace coconet
