#include "coconet/base/slices.h"

#include <cstddef>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

namespace coconet {
namespace {

/// Where the part of rank `rank` begins, in [0, extent].
int64_t CutBefore(int64_t rank, int64_t extent, int ranks, const Share& share) {
  // All in units of 1 / ranks of a weight; 128 bits hold the products.
  const __int128 before = static_cast<__int128>(rank) * share.of -
                          static_cast<__int128>(share.before) * ranks,
                 own = static_cast<__int128>(share.own) * ranks;
  if (before <= 0) return 0;
  if (before >= own) return extent;
  const int64_t granule = GranuleOf(extent);
  const __int128 nearest = (2 * before * extent + own * granule) / (2 * own * granule);
  return std::min(static_cast<int64_t>(nearest) * granule, extent);
}

}  // namespace

Slicing SliceShare(int64_t extent, int ranks, const Share& share) {
  if (share.of == 0 || extent == 0) return SliceExtent(extent, ranks);
  int64_t first = 0, last = 0;  // the ranks whose parts begin within the extent
  int64_t first_cut = 0, last_cut = 0, owner = 0;
  for (int64_t rank = 1; rank < ranks; ++rank) {
    const int64_t cut = CutBefore(rank, extent, ranks, share);
    if (cut == 0) owner = rank;
    if (cut == 0 || cut == extent) continue;
    if (first == 0) first = rank, first_cut = cut;
    last = rank, last_cut = cut;
  }
  if (first == 0) return {extent, extent, ranks, owner * extent};
  const int64_t granule = GranuleOf(extent), between = last - first;
  if (first == last) {  // room for the longer of two parts
    const int64_t rest = (extent - first_cut + granule - 1) / granule * granule,
                  per = std::max(first_cut, rest);
    return {extent, per, ranks, first * per - first_cut};
  }
  int64_t per = ((last_cut - first_cut) / between + granule - 1) / granule * granule;
  // Rounded cuts must leave no rank before the first, or behind the last, without its part.
  per = std::max({per, (first_cut + first - 1) / first,
                  (extent - first_cut + ranks - first - 1) / (ranks - first)});
  return {extent, per, ranks, first * per - first_cut};
}

std::vector<int64_t> Turn::before() const {
  if (weights_ == nullptr) return {};
  return {weights_->begin(), weights_->begin() + static_cast<std::ptrdiff_t>(count_)};
}

int Turn::RankOf(int ranks) const {
  using Load = std::pair<int64_t, int>;  // weight, rank
  std::priority_queue<Load, std::vector<Load>, std::greater<Load>> loads;
  for (int rank = 0; rank < ranks; ++rank) loads.push({0, rank});
  for (size_t i = 0; i < count_; ++i) {
    const Load least = loads.top();
    loads.pop();
    loads.push({least.first + (*weights_)[i], least.second});
  }
  return loads.top().second;
}

bool Turn::operator==(const Turn& other) const {
  if (count_ != other.count_) return false;
  return weights_ == other.weights_ || before() == other.before();
}

std::vector<Turn> Turn::Of(const std::vector<int64_t>& weights) {
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  std::vector<int64_t> sorted;
  for (size_t tensor : order) sorted.push_back(weights[tensor]);
  const Turn all(std::move(sorted));
  std::vector<Turn> turns(weights.size(), all);
  for (size_t i = 0; i < order.size(); ++i) turns[order[i]].count_ = i;
  return turns;
}

}  // namespace coconet
