#ifndef COCONET_RUNTIME_SIMT_MACHINE_BLOCK_H_
#define COCONET_RUNTIME_SIMT_MACHINE_BLOCK_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/simt/machine/clock.h"
#include "runtime/simt/machine/fiber.h"
#include "runtime/simt/machine/shadow.h"
#include "runtime/simt/machine/simt_memory.h"
#include "runtime/simt_abi.h"

namespace coconet {

struct SimtBlock;

/// A store that others do not see yet.
struct PendingStore {
  char* to;
  uint64_t value;
  int bytes;
  bool releases;
  Released released;
};

/// A copy from or to shared memory that goes on by itself.
struct OngoingCopy {
  char* to;
  const char* from;
  size_t bytes, filled;  // to so many, with zeros
  int group;             // of its thread's
  const void* at;
  std::vector<char> data;  // what it has read; empty: nothing yet
  Epoch epoch;             // while nobody has awaited it
  bool has_read = false;   // as far as its thread knows
};

/// What a thread has loaded since it last did something that others could see: who finds the same
/// again, spins.
struct Polls {
  static constexpr int kMost = 64;
  struct Poll {
    const char* from;
    uint64_t value;
  };
  std::array<Poll, kMost> all;
  int count = 0;

  /// Whether it was there with the same value. Else notes it; where the value is another, or there
  /// are too many, what came before is forgotten.
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

/// A thread of a block. Lives as long as its machine, in one block after another, so that who looks
/// for a thread that waited finds one.
struct SimtThread {
  enum class State : uint8_t { kReady, kSpins, kAtBarrier, kInShuffle, kEnded };

  SimtPlace place = {};
  SimtBlock* block = nullptr;
  char* stack = nullptr;
  Fiber fiber;
  State state = State::kReady;
  bool starved = false;
  size_t index = 0;     // in the list of its state, of ready or spinning threads
  uint64_t ticket = 0;  // of its last wait for words
  int looks = 0;        // loads that do not count as spinning: it was woken to look at the clock
  Agent agent;
  std::shared_ptr<Clock>
      learned;   // what it has acquired since the last barrier, and all before; null: nothing
  Epoch fenced;  // what it wrote until then, bulk copies see
  Polls polls;
  std::vector<PendingStore> pending;
  struct Copies {
    std::vector<OngoingCopy> ongoing;
    int closed = 0;  // groups
  };
  Copies bulk, async;
  bool vote = false;                  // what a barrier answered
  uint64_t shuffled = 0;              // what a shuffle answered
  const void* at = nullptr;           // where it waits
  const unsigned* awaited = nullptr;  // the last flag that it said it waits for, and its epoch
  unsigned epoch = 0;
};

/// A shuffle under way.
struct SimtWarp {
  unsigned mask = 0, arrived = 0;
  int bytes = 0;  // that each gives; 0: it is a shuffle
  std::array<uint64_t, 32> values;
  std::array<int, 32> distances;
  std::array<const void*, 32> given;
  std::array<void*, 32> gathered;
};

/// A launch of a kernel.
struct SimtLaunch {
  SimtKernel kernel = nullptr;
  std::string name;
  const void* params = nullptr;
  int blocks = 0, threads = 0;
  int rank = 0;                        // whose device it is on
  std::shared_ptr<const Clock> start;  // what was before it
  Clock end;                           // what is known when it has ended
  std::function<void()> done;          // called when all blocks have ended
  int started = 0, ended = 0;          // blocks
  int starved = -1;                    // block
};

struct SimtBlock {
  std::shared_ptr<SimtLaunch> launch;
  int index = 0;
  int slot = 0;
  uint32_t first = 0, generation = 0;  // of the slot
  std::shared_ptr<const Clock> clock;  // what all of its threads know of others
  std::vector<SimtThread*> threads;    // the machine's
  int live = 0;
  // Those at the barrier.
  int arrived = 0;
  bool votes = false, all_ok = true;
  const SimtThread* first_there = nullptr;
  std::vector<SimtWarp> warps;
  std::vector<std::pair<const void*, SimtBuffer*>> shared;  // by place in the source
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_MACHINE_BLOCK_H_
