#pragma once

// Copies of whole chunks to all ranks, by bulk copies if the GPU has them: through a ring of stages
// in shared memory, of which some are filled while others are stored. Thread 0 begins and awaits
// all of a block's bulk copies; the ring goes on from chunk to chunk.

namespace coconet {

/// Stages of a block's ring, and how many of them may be filling at once; the others are being read
/// by the stores to the ranks.
constexpr int kBulkStages = 11, kBulkLoads = 8, kBulkStageBytes = 4096;

/// What a stage holds: `bytes`, for to[rank] + offset on each rank.
struct BulkPart {
  char* const* to;
  Index offset;
  int bytes;
};

/// Thread 0's view of the ring, which a kernel makes once. Other threads only know whether it is
/// lost after DrainBulk.
template <int kRanks>
struct BulkRing {
  Control* control;
  int rank, step;
  uint4* stages;
  u64* filled;             // [stage]: the barrier of the bytes that fill it
  BulkPart* parts;         // [stage]
  unsigned loads, stores;  // of parts that have begun: part i is in stage i % kBulkStages
  bool lost;               // a load has not come before the deadline
};

/// Requires that the block has entered the step: what its peers did before may be overwritten.
template <int kRanks>
CC_DEVICE BulkRing<kRanks> MakeBulkRing(const Grid& grid, const Sync<kRanks>& sync) {
  BulkRing<kRanks> ring{sync.control, sync.rank, sync.step, nullptr, nullptr, nullptr, 0, 0, false};
  if constexpr (kCopiesInBulk) {
    CC_SHARED(uint4, stages, kBulkStages * kBulkStageBytes / 16);
    CC_SHARED(u64, filled, kBulkStages);
    CC_SHARED(BulkPart, parts, kBulkStages);
    ring.stages = stages, ring.filled = filled, ring.parts = parts;
    if (grid.ThreadId() == 0) {
      FenceAsyncProxy();
      for (int stage = 0; stage < kBulkStages; ++stage) InitBarrier(filled + stage, 1);
      FenceBarriers();
    }
  }
  return ring;
}

CC_DEVICE uint4* StageOf(uint4* stages, unsigned part) {
  return stages + part % kBulkStages * (kBulkStageBytes / 16);
}

/// Waits until the oldest part that is not stored yet has arrived. A load needs no other rank, so
/// the wait continues after a peer has given up; false after the deadline, as WaitFlag.
template <int kRanks>
CC_DEVICE bool AwaitLoad(const BulkRing<kRanks>& ring) {
  u64* const filled = ring.filled + ring.stores % kBulkStages;
  const unsigned parity = ring.stores / kBulkStages % 2;
  if (IsOver(filled, parity)) return true;
  const unsigned long long start = NowNs();
  while (!IsOver(filled, parity)) {
    if (NowNs() - start < ring.control->timeout_ns) continue;
    GivesUp(ring.control, start, {ring.rank, ring.step, FlagSlots::kBulkLoad, 1, 0});
    return false;
  }
  return true;
}

/// Begins to store the oldest part that is not stored yet on all ranks.
template <int kRanks>
CC_DEVICE void StoreOldest(BulkRing<kRanks>& ring) {
  ring.lost = ring.lost || !AwaitLoad(ring);
  if (ring.lost) return;
  const uint4* const stage = StageOf(ring.stages, ring.stores);
  const BulkPart& part = ring.parts[ring.stores % kBulkStages];
  for (int r = 0; r < kRanks; ++r) CopyBulk(part.to[r] + part.offset, stage, part.bytes);
  CloseBulkGroup();
  ++ring.stores;
}

/// Begins to copy `bytes`, a multiple of 16, to to[rank] + offset on all ranks.
template <int kRanks>
CC_DEVICE void CopyBytesToAll(BulkRing<kRanks>& ring, char* const* to, Index offset,
                              const char* from, Index bytes) {
  for (Index begin = 0; begin < bytes; begin += kBulkStageBytes) {
    if (ring.loads - ring.stores == kBulkLoads) StoreOldest(ring);
    if (ring.lost) return;
    // The stage's last part is kBulkStages back; at least kBulkStages - kBulkLoads parts behind it
    // have been stored since then.
    AwaitBulkReads<kBulkStages - kBulkLoads>();
    const int count =
        bytes - begin < kBulkStageBytes ? static_cast<int>(bytes - begin) : kBulkStageBytes;
    BulkPart& part = ring.parts[ring.loads % kBulkStages];
    part.to = to, part.offset = offset + begin, part.bytes = count;
    u64* const filled = ring.filled + ring.loads % kBulkStages;
    ArriveAndExpect(filled, count);
    LoadBulk(StageOf(ring.stages, ring.loads), from + begin, count, filled);
    ++ring.loads;
  }
}

/// Ends all copies that have begun: they are stored on all ranks before anything that the block's
/// threads release later. False: give up, as after WaitFlag.
template <int kRanks>
CC_DEVICE bool DrainBulk(const Grid& grid, BulkRing<kRanks>& ring) {
  if (!kCopiesInBulk) return true;
  if (grid.ThreadId() == 0) {
    while (!ring.lost && ring.stores != ring.loads) StoreOldest(ring);
    AwaitBulkStores();
  }
  return grid.SyncAnd(!ring.lost);
}

/// Begins to copy chunk `c` of this rank's slice, stored at `from`, to its place on all ranks: in
/// bulk if source and destinations are 16-byte aligned, until DrainBulk. `ranks` stays where it is.
template <bool kStream, int V, int U, int kRanks, class T>
CC_DEVICE void CopyToAll(const Grid& grid, BulkRing<kRanks>& ring, T* const (&ranks)[kRanks],
                         const T* from, const Chunk& c) {
  const T* const source = from + (c.begin - c.shift);
  unsigned long long ends = reinterpret_cast<unsigned long long>(source);
  for (int r = 0; r < kRanks; ++r) ends |= reinterpret_cast<unsigned long long>(ranks[r] + c.begin);
  if (!kCopiesInBulk || ends % 16 != 0) return CopyByPacks<kStream, V, U>(grid, ranks, from, c);
  constexpr Index kBytes = sizeof(T);
  const Index bytes = (c.end - c.begin) * kBytes / 16 * 16;
  if (grid.ThreadId() == 0)
    CopyBytesToAll(ring, reinterpret_cast<char* const*>(ranks), c.begin * kBytes,
                   reinterpret_cast<const char*>(source), bytes);
  const Chunk rest{c.begin + bytes / kBytes, c.end, c.shift, c.id};
  CopyByPacks<kStream, V, U>(grid, ranks, from, rest);
}

}  // namespace coconet
