#ifndef COCONET_RUNTIME_SIMT_OPTIONS_H_
#define COCONET_RUNTIME_SIMT_OPTIONS_H_

#include <cstdint>

namespace coconet {

/// Who goes on next, of the threads that can.
enum class SimtOrder : uint8_t {
  kRoundRobin,     // in turns
  kRandom,         // any
  kStarveBlock,    // one block of each launch, drawn by the seed, only where no other can
  kStarveRank,     // one rank
  kStarveWarp,     // one warp of each block
  kConsumerFirst,  // who was woken last: it uses what it waited for before anybody else gets
                   // further
};
inline constexpr int kSimtOrders = 6;

/// How simulated GPUs run. One seed and one order of launches are one interleaving.
struct SimtOptions {
  uint64_t seed = 1;
  SimtOrder order = SimtOrder::kRandom;
  /// Blocks of a device that run at once; 0: all that are launched. Fewer, where a kernel waits for
  /// a block that is not there, are a deadlock; the driver tells of as many multiprocessors with
  /// room for one block each, so that binding refuses what would come to it.
  int resident_blocks = 0;
  /// Stores of flags and of messages become visible late, and those that no release orders in any
  /// order.
  bool weak = true;

  /// An interleaving by number: one after the other they have all orders in turns.
  static constexpr SimtOptions Of(uint64_t seed) {
    return {.seed = seed, .order = static_cast<SimtOrder>(seed % kSimtOrders)};
  }
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_OPTIONS_H_
