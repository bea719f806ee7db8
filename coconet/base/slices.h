#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace coconet {

/// Half-open range of indices.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

inline constexpr int64_t kMostWeight = int64_t{1} << 52;

/// The share of one tensor in work on several tensors side by side: the weights of the tensors
/// before it, its own, and the sum of all.
struct Share {
  int64_t before = 0, own = 0, of = 0;  // of 0: the tensor is alone
  bool operator==(const Share&) const = default;
};

/// How an extent is cut over ranks: rank i holds what [i * per - shift, (i + 1) * per - shift) has
/// in common with [0, extent), stored from index 0 on. Storage has room for `per` on every rank.
struct Slicing {
  int64_t extent = 0;
  int64_t per = 0;
  int ranks = 1;
  int64_t shift = 0;

  Range Of(int64_t rank) const {
    return {std::clamp<int64_t>(rank * per - shift, 0, extent),
            std::clamp<int64_t>((rank + 1) * per - shift, 0, extent)};
  }
  /// The rank that holds `index`, which is in [0, extent).
  int OwnerOf(int64_t index) const { return static_cast<int>((index + shift) / per); }
  int64_t padded() const { return per * ranks; }
};

inline constexpr int64_t kSliceAlign = 64;  // elements: whole cache lines for every dtype

/// The largest power of two that is at most kSliceAlign and at most extent / 16; at least 1.
inline int64_t GranuleOf(int64_t extent) {
  int64_t granule = 1;
  while (granule < kSliceAlign && 2 * granule <= extent / 16) granule *= 2;
  return granule;
}

/// The canonical way to cut an extent over ranks, the same under every schedule and for tensors of
/// every shape: without a shift, and `per` = ceil(extent / ranks), rounded up to a multiple of
/// GranuleOf(per). So large slices begin at cache lines and small ones stay balanced. Slices may be
/// empty if there are more ranks than elements.
inline Slicing SliceExtent(int64_t extent, int ranks) {
  const int64_t per = (extent + ranks - 1) / ranks, granule = GranuleOf(per);
  return {extent, (per + granule - 1) / granule * granule, ranks};
}

/// Cuts the extent of one of several tensors so that each rank has an equal part of their weights,
/// rank after rank: rank i gets the weights [i, i + 1) * share.of / ranks, of which this tensor's
/// are those from share.before on, spread evenly over its extent. Cuts are at multiples of
/// GranuleOf(extent). A tensor of no weight is on one rank. Requires 0 <= before, own and
/// before + own <= of <= kMostWeight.
Slicing SliceShare(int64_t extent, int ranks, const Share& share);

/// When one of several tensors, each of which goes whole to one rank, is given to its rank: the
/// weights of the tensors that are given before it. Copies share them.
class Turn {
 public:
  /// The first turn: nothing is given before.
  Turn() = default;
  explicit Turn(std::vector<int64_t> before)
      : weights_(std::make_shared<const std::vector<int64_t>>(std::move(before))),
        count_(weights_->size()) {}

  /// The weights given before, in their order.
  std::vector<int64_t> before() const;
  /// The rank that gets the tensor. Each goes to the rank that has the least weight so far, of
  /// equal ones the lowest.
  int RankOf(int ranks) const;
  bool operator==(const Turn& other) const;

  /// By tensor: its turn, longest processing time first (Graham, 1969): heavier tensors before
  /// lighter ones, equal ones by number. The greatest load is then at most 4/3 - 1/(3 ranks) of
  /// the least possible.
  static std::vector<Turn> Of(const std::vector<int64_t>& weights);

 private:
  std::shared_ptr<const std::vector<int64_t>> weights_;  // null: none
  size_t count_ = 0;                                     // of these
};

/// Gives the whole extent to one rank.
inline Slicing SliceWhole(int64_t extent, int ranks, int owner) {
  return {extent, extent, ranks, owner * extent};
}

}  // namespace coconet
