#pragma once

// The interface between a generated kernel and the executor. The host compiler and NVRTC compile
// this file, and it is embedded as text in every generated kernel's include set: it includes
// nothing and uses built-in types only.

#if defined(__CUDACC__)
#define CC_ABI __host__ __device__ constexpr
#else
#define CC_ABI constexpr
#endif

namespace coconet {

/// A kernel's argument block is a struct of 8-byte words, in the order of KernelStep::args:
/// tensor maps, pointers and signed 64-bit integers. It begins and ends at multiples of 64 bytes.
using Word = unsigned long long;

/// Host only: the type of a generated kernel, `extern "C" void symbol(...)`. The executor calls it
/// once per block, all blocks concurrently. `params`: the argument block.
using HostKernel = void (*)(const void* params, int block, int blocks);

/// The wait that failed. Written once, by the waiter, before it raises `abort`.
struct WaitFailure {
  int peer;  // world rank whose flag was awaited
  int step;  // index of the step in the plan
  /// The flag's index in its row (FlagSlots) for a kernel without rounds; ~index for the flag of a
  /// round; FlagSlots::Tile for a tile's flag; FlagSlots::kBulkLoad.
  int slot;
  unsigned expected;  // epoch
  unsigned found;     // epoch
};

/// One per rank and bound plan, in device memory that peers can write: they raise `abort`.
struct Control {
  unsigned abort;  // 0: running; else 1 + the world rank that gave up first, and all waits end
  unsigned spins;  // host only: polls of a flag before `wait` is called
  /// near[peer], by number in the node or Beside: the peer shares a core with this rank, so that
  /// kernels call `wait` at once instead of spinning.
  const unsigned char* near;
  unsigned long long timeout_ns;  // deadline of one wait
  /// Host only: the waiting policy (runtime/node/wait.cc). Returns false after the deadline or
  /// abort, with `failure` filled in. `peer`: its number in the node, or Beside.
  bool (*wait)(Control* control, const unsigned* flag, unsigned expected, int peer, int step,
               int slot);
  WaitFailure failure;
  /// GPUs only: the abort word in memory that both host and device reach; used instead of `abort`.
  /// A wait that fails sets it to `self`; `failure` then describes one of the failed waits.
  unsigned* stop;
  unsigned self;     // 1 + this rank's world rank
  unsigned claimed;  // non-zero: a thread is writing `failure`
};

/// Peer numbers of the neighbours in the previous and the next pipeline stage (same place in the
/// stage). They follow the numbers 0 .. ranks - 1 of the node's ranks. Own: the number that this
/// rank has at neighbour `peer`.
struct Beside {
  static CC_ABI int Number(int ranks, bool after) { return ranks + (after ? 1 : 0); }
  static CC_ABI int Own(int ranks, int peer) { return 2 * ranks + 1 - peer; }
  static constexpr int kCount = 2;
};

/// Flags of one collective kernel step, on each rank: one row of Row() 32-bit words per rank of the
/// node (only rank s writes row s), and, for a kernel that sends to other pipeline stages, one per
/// neighbour (Beside). A flag holds the epoch (1, 2, ...) in which it was last set; it is never
/// reset, and epochs compare by wrap-around difference. A row holds
///   one `enter` flag per block: the writer's inputs are ready and its outputs may be overwritten;
///   one `done` flag per block: the writer has read its peers' inputs and written their outputs;
///   one flag per round of folds and block: the writer's partial sums have been stored here;
///   one flag per chunk: the chunk of the writer's slice has been stored here.
struct FlagSlots {
  /// WaitFailure::slot of an epoch stored next to the data, which has no flag.
  static constexpr int kInData = -0x7fffffff - 1;
  /// WaitFailure::slot of the flag of a product's tile (jit/device/tiles.h), which lies outside the
  /// rows. Requires tile < kMostTiles.
  static CC_ABI int Tile(long long tile) { return kInData + 1 + int(tile); }
  static constexpr int kMostTiles = 1 << 30;
  /// WaitFailure::slot of a bulk copy of this rank's own memory (jit/device/gpu/bulk.h).
  static constexpr int kBulkLoad = kInData + 1 + kMostTiles;
  static CC_ABI int Enter(int block) { return block; }
  static CC_ABI int Done(int blocks, int block) { return blocks + block; }
  static CC_ABI int Round(int blocks, int round, int block) { return (2 + round) * blocks + block; }
  static CC_ABI int Chunk(int blocks, int rounds, long long chunk) {
    return int((2 + rounds) * blocks + chunk);
  }
  /// Row length in words: whole cache lines, so that two writers never share one.
  static CC_ABI long long Row(int blocks, int rounds, long long chunks) {
    return ((2 + rounds) * blocks + chunks + 15) / 16 * 16;
  }
};

}  // namespace coconet
