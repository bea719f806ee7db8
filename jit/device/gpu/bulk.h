#pragma once

// Copies of whole chunks to all ranks, by the asynchronous proxy where there is one.

namespace coconet {

/// Shared-memory buffers of a block: it fills one while one thread sends earlier ones to all ranks.
constexpr int kBulkBuffers = 4, kBulkBufferWords = 512;  // of 16 bytes

/// Copies `words` words of 16 bytes from global memory to the same place on all ranks.
template <int kRanks>
CC_DEVICE void CopyWordsToAll(const Grid& grid, char* const (&to)[kRanks], const char* from,
                              Index words) {
  CC_SHARED(uint4, buffers, kBulkBuffers * kBulkBufferWords);
  int buffer = 0;
  for (Index begin = 0; begin < words; begin += kBulkBufferWords) {
    const int count =
        words - begin < kBulkBufferWords ? static_cast<int>(words - begin) : kBulkBufferWords;
    if (begin >= kBulkBuffers * kBulkBufferWords) {
      if (grid.ThreadId() == 0) AwaitBulkReads<kBulkBuffers - 1>();
      grid.Sync();
    }
    uint4* const part = buffers + buffer * kBulkBufferWords;
    for (int i = grid.ThreadId(); i < count; i += grid.BlockSize())
      Store16(part + i, Load16(reinterpret_cast<const uint4*>(from) + begin + i));
    FenceForBulkCopies();
    grid.Sync();
    if (grid.ThreadId() == 0) {
      for (int r = 0; r < kRanks; ++r) CopyBulk(to[r] + 16 * begin, part, 16 * count);
      CloseBulkGroup();
    }
    buffer = (buffer + 1) % kBulkBuffers;
  }
  if (grid.ThreadId() == 0) AwaitBulkStores();
  grid.Sync();
}

/// Copies chunk `c` of this rank's slice, stored at `from`, to its place on all ranks; in bulk if
/// source and destinations are 16-byte aligned.
template <bool kStream, int V, int kRanks, class T>
CC_DEVICE void CopyToAll(const Grid& grid, T* const (&ranks)[kRanks], const T* from,
                         const Chunk& c) {
  const T* const source = from + (c.begin - c.shift);
  unsigned long long ends = reinterpret_cast<unsigned long long>(source);
  for (int r = 0; r < kRanks; ++r) ends |= reinterpret_cast<unsigned long long>(ranks[r] + c.begin);
  if (!kCopiesInBulk || ends % 16 != 0) return CopyByPacks<kStream, V>(grid, ranks, from, c);
  const Index words = (c.end - c.begin) * static_cast<Index>(sizeof(T)) / 16;
  char* to[kRanks];
  CC_UNROLL for (int r = 0; r < kRanks; ++r) to[r] = reinterpret_cast<char*>(ranks[r] + c.begin);
  CopyWordsToAll(grid, to, reinterpret_cast<const char*>(source), words);
  const Chunk rest{c.begin + words * 16 / static_cast<Index>(sizeof(T)), c.end, c.shift, c.id};
  CopyByPacks<kStream, V>(grid, ranks, from, rest);
}

}  // namespace coconet
