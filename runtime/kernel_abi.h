#ifndef COCONET_RUNTIME_KERNEL_ABI_H_
#define COCONET_RUNTIME_KERNEL_ABI_H_

// What a generated kernel and the executor agree on. This file is compiled by the host compiler, by
// NVRTC, and is embedded as text in every generated kernel's include set: it includes nothing and
// uses built-in types.

#if defined(__CUDACC__)
#define CC_ABI __host__ __device__ constexpr
#else
#define CC_ABI constexpr
#endif

namespace coconet {

/// A kernel's argument block is a struct of 8-byte words, in the order of KernelStep::args:
/// pointers and signed 64-bit integers.
using Word = unsigned long long;

/// Host only: what a generated kernel is, as `extern "C" void symbol(...)`. Called once a block, at
/// the same time. `params` is the argument block.
using HostKernel = void (*)(const void* params, int block, int blocks);

/// Where a wait gave up. Written once, by the waiter, before it raises `abort`.
struct WaitFailure {
  int peer;  // world rank whose flag did not come
  int step;  // index of the step in the plan
  int slot;  // slot in the flag row (FlagSlots) of a kernel without rounds; of a round's flag,
             // ~slot; FlagSlots::Tile
  unsigned expected;  // epoch
  unsigned found;
};

/// One a rank and bound plan, in device memory that peers can write (they raise `abort`).
struct Control {
  unsigned abort;  // non-zero: give up at the next wait; 1 + the world rank that gave up first
  unsigned spins;  // host: polls of a flag before `wait` is called, ...
  const unsigned char* near;  // ... but none where near[peer], by number in the node and beside: it
                              // shares a core with this rank
  unsigned long long timeout_ns;  // how long one wait may take
  /// Host only: the waiting policy, in one place (runtime/node/wait.cc). Returns false after the
  /// deadline or abort, with `failure` filled in. `peer`: its number in the node, or Beside.
  bool (*wait)(Control* control, const unsigned* flag, unsigned expected, int peer, int step,
               int slot);
  WaitFailure failure;
  /// GPUs only: the word that tells a rank's kernels to give up, where its host and its device
  /// reach it, in place of `abort`. A wait that fails sets it to `self`; `failure` is of one of
  /// those that end so.
  unsigned* stop;
  unsigned self;     // 1 + this rank's number in the world
  unsigned claimed;  // some thread writes `failure`
};

/// The number, behind those of a node's `ranks`, of the rank at this one's place of the stage
/// before, and of the one after; and what number this rank has there.
struct Beside {
  static CC_ABI int Number(int ranks, bool after) { return ranks + (after ? 1 : 0); }
  static CC_ABI int Own(int ranks, int peer) { return 2 * ranks + 1 - peer; }
  static constexpr int kCount = 2;
};

/// Flags of one collective kernel step, on each rank: a row for each rank of the node (row s is
/// written by rank s only), and, of a kernel that sends to other stages, one for each rank beside,
/// of `row` 32-bit words. A flag holds the epoch (1, 2, ...) in which it was last set, is never
/// reset, and compares by wrap-around difference. In a row: one `enter` flag a block ("my inputs
/// are ready, my outputs may be overwritten"), one `done` flag a block ("I have read your inputs
/// and written your outputs"), one flag a round of folds and block ("my part of the sums is on your
/// side"), one flag a chunk ("this chunk of my slice is on your side").
struct FlagSlots {
  /// No flag, but the epoch beside data (WaitFailure::slot).
  static constexpr int kInData = -0x7fffffff - 1;
  /// What WaitFailure calls the flag of a tile of a product (jit/device/tiles.h), which is in no
  /// row of these; fewer than kMostTiles.
  static CC_ABI int Tile(long long tile) { return kInData + 1 + int(tile); }
  static constexpr int kMostTiles = 1 << 30;
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

#endif  // COCONET_RUNTIME_KERNEL_ABI_H_
