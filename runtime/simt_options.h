#pragma once

#include <cstdint>

namespace coconet {

/// Which of the ready threads the scheduler resumes next.
enum class SimtOrder : uint8_t {
  kRoundRobin,   // in turns
  kRandom,       // at random
  kStarveBlock,  // one block of each launch, drawn by the seed, only when no other is ready
  kStarveRank,   // the same for one rank
  kStarveWarp,   // the same for one warp of each block
  /// The thread woken last: it uses what it waited for before any other thread runs.
  kConsumerFirst,
};
inline constexpr int kSimtOrders = 6;

/// How simulated GPUs run. One seed and one order determine one interleaving.
struct SimtOptions {
  uint64_t seed = 1;
  SimtOrder order = SimtOrder::kRandom;
  /// Blocks resident at once per device; 0: all launched blocks. With fewer, a kernel that waits
  /// for a block that is not resident deadlocks; the driver reports as many multiprocessors, each
  /// with room for one block, so that binding refuses such kernels.
  int resident_blocks = 0;
  /// Weak memory model: stores of flags and of messages become visible late, and in any order
  /// unless a release orders them.
  bool weak = true;

  /// Interleaving number `seed`: consecutive numbers cycle through all orders.
  static constexpr SimtOptions Of(uint64_t seed) {
    return {.seed = seed, .order = static_cast<SimtOrder>(seed % kSimtOrders)};
  }
};

}  // namespace coconet
