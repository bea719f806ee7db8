#ifndef COCONET_JIT_DEVICE_GPU_BULK_H_
#define COCONET_JIT_DEVICE_GPU_BULK_H_

// Copies of whole chunks by the asynchronous proxy, where there is one.

namespace coconet {

/// A block brings a part of a chunk to shared memory, and one thread sends it to all ranks, while
/// the block brings the next one.
constexpr int kBulkStages = 4, kBulkStageWords = 512;  // of 16 bytes

/// `words` of 16 bytes from global memory to the same place on all ranks.
template <int kRanks>
CC_DEVICE void CopyWordsToAll(const Grid& grid, char* const (&to)[kRanks], const char* from,
                              Index words) {
  CC_SHARED(uint4, stages, kBulkStages * kBulkStageWords);
  int stage = 0;
  for (Index begin = 0; begin < words; begin += kBulkStageWords) {
    const int count =
        words - begin < kBulkStageWords ? static_cast<int>(words - begin) : kBulkStageWords;
    if (begin >= kBulkStages * kBulkStageWords) {
      if (grid.ThreadId() == 0) AwaitBulkReads<kBulkStages - 1>();
      grid.Sync();
    }
    uint4* const part = stages + stage * kBulkStageWords;
    for (int i = grid.ThreadId(); i < count; i += grid.BlockSize())
      Store16(part + i, Load16(reinterpret_cast<const uint4*>(from) + begin + i));
    FenceForBulkCopies();
    grid.Sync();
    if (grid.ThreadId() == 0) {
      for (int r = 0; r < kRanks; ++r) CopyBulk(to[r] + 16 * begin, part, 16 * count);
      CloseBulkGroup();
    }
    stage = (stage + 1) % kBulkStages;
  }
  if (grid.ThreadId() == 0) AwaitBulkStores();
  grid.Sync();
}

/// Chunk `c` of this rank's slice, stored at `from`, to its place on all ranks: in bulk where all
/// of these, and it, begin at multiples of 16 bytes.
template <bool kStream, int V, int kRanks, class T>
CC_DEVICE void CopyToAll(const Grid& grid, T* const (&ranks)[kRanks], const T* from, const Chunk& c,
                         bool packed) {
  const T* const source = from + (c.begin - c.shift);
  unsigned long long ends = reinterpret_cast<unsigned long long>(source);
  for (int r = 0; r < kRanks; ++r) ends |= reinterpret_cast<unsigned long long>(ranks[r] + c.begin);
  if (!kCopiesInBulk || ends % 16 != 0)
    return CopyByPacks<kStream, V>(grid, ranks, from, c, packed);
  const Index words = (c.end - c.begin) * static_cast<Index>(sizeof(T)) / 16;
  char* to[kRanks];
  CC_UNROLL for (int r = 0; r < kRanks; ++r) to[r] = reinterpret_cast<char*>(ranks[r] + c.begin);
  CopyWordsToAll(grid, to, reinterpret_cast<const char*>(source), words);
  const Chunk rest{c.begin + words * 16 / static_cast<Index>(sizeof(T)), c.end, c.shift, c.id};
  CopyByPacks<kStream, V>(grid, ranks, from, rest, false);
}

}  // namespace coconet

#endif  // COCONET_JIT_DEVICE_GPU_BULK_H_
