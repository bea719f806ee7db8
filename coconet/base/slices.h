#pragma once

#include <algorithm>
#include <cstdint>

namespace coconet {

/// Half-open range of indices.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// The canonical way to cut an extent over ranks, the same under every schedule and for tensors of
/// every shape.
///
/// `per` = ceil(extent / ranks), rounded up to a multiple of a granule: the largest power of two
/// that is at most 64 and at most per / 16. So large slices begin at cache lines and small ones
/// stay balanced. Rank i holds [min(i * per, extent), min((i + 1) * per, extent)); storage is
/// padded to ranks * per. Slices may be empty if there are more ranks than elements.
struct Slicing {
  int64_t extent = 0;
  int64_t per = 0;
  int ranks = 1;

  Range Of(int rank) const {
    return {std::min(rank * per, extent), std::min((rank + 1) * per, extent)};
  }
  int64_t padded() const { return per * ranks; }
};

inline constexpr int64_t kSliceAlign = 64;  // elements: whole cache lines for every dtype

inline Slicing SliceExtent(int64_t extent, int ranks) {
  const int64_t per = (extent + ranks - 1) / ranks;
  int64_t granule = 1;
  while (granule < kSliceAlign && 2 * granule <= per / 16) granule *= 2;
  return {extent, (per + granule - 1) / granule * granule, ranks};
}

}  // namespace coconet
