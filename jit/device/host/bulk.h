#pragma once

// Copies of whole chunks: on the host, a plain loop.

namespace coconet {

template <int kRanks>
struct BulkRing {};

template <int kRanks>
CC_DEVICE BulkRing<kRanks> MakeBulkRing(const Grid&, const Sync<kRanks>&) {
  return {};
}

/// Copies chunk `c` of this rank's slice, stored at `from`, to its place on all ranks.
template <bool kStream, int V, int U, int kRanks, class T>
CC_DEVICE void CopyToAll(const Grid& grid, BulkRing<kRanks>&, T* const (&ranks)[kRanks],
                         const T* from, const Chunk& c) {
  CopyByPacks<kStream, V, U>(grid, ranks, from, c);
}

/// Ends all copies that have begun. False: give up.
template <int kRanks>
CC_DEVICE bool DrainBulk(const Grid&, BulkRing<kRanks>&) {
  return true;
}

}  // namespace coconet
