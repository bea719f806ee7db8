#pragma once

// Copies of whole chunks: on the host, a plain loop.

namespace coconet {

/// Copies chunk `c` of this rank's slice, stored at `from`, to its place on all ranks.
template <bool kStream, int V, int kRanks, class T>
CC_DEVICE void CopyToAll(const Grid& grid, T* const (&ranks)[kRanks], const T* from,
                         const Chunk& c) {
  CopyByPacks<kStream, V>(grid, ranks, from, c);
}

}  // namespace coconet
