#pragma once

// Flags between ranks, and stores to all peers, of collectives over symmetric memory.

namespace coconet {

/// One block's part of the flag protocol of one collective kernel (FlagSlots in kernel_abi.h).
/// Every wait has a deadline; false means: give up, control->failure says where.
template <int kRanks>
struct Sync {
  Control* control;
  unsigned* const* flags;  // [rank]: the flag rows on that rank
  unsigned* epochs;        // [block]: the last finished epoch of this rank
  Index row;               // words per flag row
  int rank;
  int step;
  int rounds;  // rounds of folds that the kernel waits for
  unsigned epoch;
  bool streaming;  // this kernel made streaming stores

  template <class Slot>
  CC_DEVICE void Signal(const Sync& s, const Grid& grid, Slot slot) {
    grid.Sync();
    if (s.streaming && grid.ThreadId() < kRanks) StreamFence();
    for (int r = grid.ThreadId(); r < kRanks; r += grid.BlockSize())
      if (r != s.rank) StoreRelease(s.flags[r] + s.rank * s.row + slot, s.epoch);
  }
  template <class Slot>
  CC_DEVICE bool WaitAll(const Sync& s, const Grid& grid, Slot slot) {
    bool ok = true;
    // First waits for peers that need this core to make progress, then spins for the others.
    for (int pass = 0; pass < 2; ++pass) {
      for (int r = grid.ThreadId(); r < kRanks; r += grid.BlockSize())
        if (r != s.rank && SharesCore(s.control, r) == (pass == 0))
          ok = ok && WaitFlag(s.control, s.flags[s.rank] + r * s.row + slot, s.epoch, r, s.step,
                              int(slot));
    }
    return grid.SyncAnd(ok);
  }
};

template <int kRanks>
CC_DEVICE Sync<kRanks> MakeSync(const Grid& grid, Control* control, unsigned* const* flags,
                                unsigned* epochs, Index row, int rank, int step, int rounds,
                                bool streaming) {
  return {control, flags, epochs, row, rank, step, rounds, epochs[grid.BlockId()] + 1, streaming};
}

/// Signals that this rank's inputs are ready and its outputs may be overwritten; waits until all
/// ranks have signalled that.
template <int kRanks>
CC_DEVICE bool Enter(const Sync<kRanks>& s, const Grid& grid) {
  const int slot = FlagSlots::Enter(grid.BlockId());
  Sync<kRanks>::Signal(s, grid, slot);
  return Sync<kRanks>::WaitAll(s, grid, slot);
}
/// Signals that chunk `id` of this rank's slice is stored on all ranks.
template <int kRanks>
CC_DEVICE void Publish(const Sync<kRanks>& s, const Grid& grid, Index id) {
  Sync<kRanks>::Signal(s, grid, FlagSlots::Chunk(grid.GridSize(), s.rounds, id));
}
/// Signals that to all ranks, this one as well, for a kernel that runs beside this one.
template <int kRanks>
CC_DEVICE void PublishBeside(const Sync<kRanks>& s, const Grid& grid, Index id) {
  const int slot = FlagSlots::Chunk(grid.GridSize(), s.rounds, id);
  Sync<kRanks>::Signal(s, grid, slot);
  if (grid.ThreadId() == 0) StoreRelease(s.flags[s.rank] + s.rank * s.row + slot, s.epoch);
}
/// Waits until chunk `id` of `peer`'s slice is stored here.
template <int kRanks>
CC_DEVICE bool AwaitChunk(const Sync<kRanks>& s, const Grid& grid, int peer, Index id) {
  if (peer == s.rank) return true;
  const int slot = FlagSlots::Chunk(grid.GridSize(), s.rounds, id);
  bool ok = true;
  if (grid.ThreadId() == 0)
    ok = WaitFlag(s.control, s.flags[s.rank] + peer * s.row + slot, s.epoch, peer, s.step,
                  FlagSlots::Chunk(grid.GridSize(), 0, id));
  return grid.SyncAnd(ok);
}
/// Signals that this block has left its partial results (folds.h), to all blocks of this rank or of
/// all ranks; waits until these have signalled the same.
template <int kRanks>
CC_DEVICE bool Meet(const Sync<kRanks>& s, const Grid& grid, int round, bool all_ranks) {
  const int slot = FlagSlots::Round(grid.GridSize(), round, 0);
  grid.Sync();
  for (int r = grid.ThreadId(); r < kRanks; r += grid.BlockSize())
    if (all_ranks || r == s.rank)
      StoreRelease(s.flags[r] + s.rank * s.row + slot + grid.BlockId(), s.epoch);
  bool ok = true;
  const int others = kRanks * grid.GridSize();
  for (int pass = 0; pass < 2; ++pass) {  // as in WaitAll
    for (int k = grid.ThreadId(); k < others; k += grid.BlockSize()) {
      const int r = k / grid.GridSize(), block = k % grid.GridSize();
      if ((!all_ranks && r != s.rank) || (SharesCore(s.control, r) && r != s.rank) != (pass == 0))
        continue;
      ok = ok && WaitFlag(s.control, s.flags[s.rank] + r * s.row + slot + block, s.epoch, r, s.step,
                          ~(slot + block));
    }
  }
  return grid.SyncAnd(ok);
}
/// Ends the step without a signal. The half in which this rank staged data in this step is reused
/// two steps later; by then this rank has seen its peers enter the step in between, so they have
/// ended this one.
template <int kRanks>
CC_DEVICE void Leave(const Sync<kRanks>& s, const Grid& grid) {
  grid.Sync();  // all threads have read this step's epoch
  if (grid.ThreadId() == 0) s.epochs[grid.BlockId()] = s.epoch;
}
/// Signals that this rank has read its peers' inputs and written their outputs; waits until all
/// ranks have signalled that.
template <int kRanks>
CC_DEVICE bool Exit(const Sync<kRanks>& s, const Grid& grid) {
  const int slot = FlagSlots::Done(grid.GridSize(), grid.BlockId());
  Sync<kRanks>::Signal(s, grid, slot);
  if (!Sync<kRanks>::WaitAll(s, grid, slot)) return false;
  if (grid.ThreadId() == 0) s.epochs[grid.BlockId()] = s.epoch;
  return true;
}

// ---- Sends between pipeline stages: to the rank at the same place of an adjacent stage

/// The pipeline stages that a kernel sends to: the next, the previous, or both.
struct Routes {
  bool next, previous;
  /// True when the kernel sends to the next stage (`after`) or to the previous one; it then
  /// receives from the opposite side.
  CC_DEVICE bool GoesTo(const Routes& r, bool after) { return after ? r.next : r.previous; }
};

template <int kRanks>
CC_DEVICE void SignalBeside(const Sync<kRanks>& s, bool after, Index slot) {
  const int peer = Beside::Number(kRanks, after);
  if (s.flags[peer] != nullptr)
    StoreRelease(s.flags[peer] + Beside::Own(kRanks, peer) * s.row + slot, s.epoch);
}
template <int kRanks>
CC_DEVICE bool AwaitBeside(const Sync<kRanks>& s, bool after, int slot) {
  const int peer = Beside::Number(kRanks, after);
  return s.flags[peer] == nullptr ||
         WaitFlag(s.control, s.flags[s.rank] + peer * s.row + slot, s.epoch, peer, s.step, slot);
}
/// Signals that peers may store what this kernel receives. Every stage must call it before it waits
/// for any other.
template <int kRanks>
CC_DEVICE void OpenSends(const Sync<kRanks>& s, const Grid& grid, const Routes& routes) {
  grid.Sync();
  for (int after = grid.ThreadId(); after < 2; after += grid.BlockSize())
    if (Routes::GoesTo(routes, after == 0))
      SignalBeside(s, after != 0, FlagSlots::Enter(grid.BlockId()));
}
/// Waits until the receivers of this kernel's sends have signalled that.
template <int kRanks>
CC_DEVICE bool AwaitReceivers(const Sync<kRanks>& s, const Grid& grid, const Routes& routes) {
  bool ok = true;
  for (int after = grid.ThreadId(); after < 2; after += grid.BlockSize())
    if (Routes::GoesTo(routes, after != 0))
      ok = ok && AwaitBeside(s, after != 0, FlagSlots::Enter(grid.BlockId()));
  return grid.SyncAnd(ok);
}
/// Signals that all sends of this block are stored; waits until the sends to this block are.
template <int kRanks>
CC_DEVICE bool CloseSends(const Sync<kRanks>& s, const Grid& grid, const Routes& routes) {
  const int slot = FlagSlots::Done(grid.GridSize(), grid.BlockId());
  grid.Sync();
  if (s.streaming && grid.ThreadId() < 2) StreamFence();
  for (int after = grid.ThreadId(); after < 2; after += grid.BlockSize())
    if (Routes::GoesTo(routes, after != 0)) SignalBeside(s, after != 0, slot);
  bool ok = true;
  for (int after = grid.ThreadId(); after < 2; after += grid.BlockSize())
    if (Routes::GoesTo(routes, after == 0)) ok = ok && AwaitBeside(s, after != 0, slot);
  return grid.SyncAnd(ok);
}

// ---- Stores to all ranks

/// `x`: what Store stores at once.
template <bool kStream, int kRanks, class T, class Stored>
CC_DEVICE void StorePeers(T* const (&peers)[kRanks], Index i, const Stored& x) {
  CC_UNROLL for (int r = 0; r < kRanks; ++r) Store<kStream>(peers[r] + i, x);
}

/// One multicast store if there is a multicast address and the pack consists of whole words.
template <bool kStream, int V, int kRanks, class T>
CC_DEVICE void StorePeers(const Multicast<T>& all, T* const (&peers)[kRanks], Index i,
                          Pack<Compute<T>, V> x) {
  if constexpr (sizeof(T) * V % 4 == 0) {
    if (IsThere(all)) return MulticastStore<V, kRanks>(all.ranks, i, ToRaw<T, V>(x));
  }
  StorePeers<kStream>(peers, i, x);
}

/// Copies chunk `c` of this rank's slice, stored at `from`, to its place on all ranks.
template <bool kStream, int V, int U, int kRanks, class T>
CC_DEVICE void CopyByPacks(const Grid& grid, T* const (&ranks)[kRanks], const T* from,
                           const Chunk& c) {
  using Bits = Raw<T>;
  ForEach<V, U>(grid, c.begin, c.end, PacksFit<V>(c.shift), [&](auto lanes, Index i) CC_INLINE {
    constexpr int N = decltype(lanes)::kCount;
    const auto x = FetchLanes<N>(reinterpret_cast<const Bits*>(from) + (i - c.shift));
    return [&, i, x]() CC_INLINE {
      CC_UNROLL for (int r = 0; r < kRanks; ++r)
          StoreRaw<kStream>(reinterpret_cast<Bits*>(ranks[r]) + i, Arrived(x));
    };
  });
}

/// Stores to the neighbour in the adjacent pipeline stage, if there is one; stores zeros to `own`
/// if no neighbour sends to this rank.
template <bool kStream, int V, class T>
CC_DEVICE void StoreBeside(T* const (&beside)[Beside::kCount], bool after, T* own, Index i,
                           Pack<Compute<T>, V> x) {
  if (beside[after] != nullptr) Store<kStream>(beside[after] + i, x);
  if (beside[!after] == nullptr) Store<kStream>(own + i, Splat<V>(Compute<T>(0)));
}

}  // namespace coconet
