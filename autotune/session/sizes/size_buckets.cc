#include "autotune/session/sizes/size_buckets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr double kNarrow = 1.2;  // the factor of a bracket that is narrow enough
constexpr double kAlike = 1.03;  // the ratio of times that differ too little to tell
constexpr int kDigits = 5;       // binary digits of a size in the middle

/// Rounded to `digits` binary digits.
int64_t Rounded(double size, int digits) {
  const int width = std::bit_width(static_cast<uint64_t>(size));
  const double unit = std::ldexp(1, std::max(width - digits, 0));
  return static_cast<int64_t>(std::round(size / unit) * unit);
}

/// How far a size is from a range, by logarithms.
double Distance(const SizeRange& range, int64_t size) {
  if (range.Contains(size)) return 0;
  const double from = static_cast<double>(size < range.lo ? range.lo : range.hi);
  return std::abs(std::log(static_cast<double>(std::max<int64_t>(size, 1)) / from));
}

/// The last point up to which the variant, from `from` on, is fast enough; from - 1: it is not.
int ReachOf(absl::Span<const std::vector<double>> us, double tie, int from, int variant) {
  int at = from;
  for (; at < std::ssize(us); ++at) {
    double least = std::numeric_limits<double>::infinity();
    for (double time : us[at]) least = time > 0 ? std::min(least, time) : least;
    if (us[at][variant] <= 0 || us[at][variant] > tie * least) break;
  }
  return at - 1;
}

/// The lowest sizes of a box, that of `last` as the last.
std::vector<int64_t> CornerOf(const SizeRanges& box, const std::string& last) {
  std::vector<int64_t> corner;
  for (const auto& [symbol, range] : box) {
    if (symbol != last) corner.push_back(range.lo);
  }
  corner.push_back(box.at(last).lo);
  return corner;
}

}  // namespace

std::vector<int64_t> GridOf(const SizeRange& range, double factor) {
  std::vector<int64_t> grid = {range.lo};
  const double whole = static_cast<double>(range.hi) / static_cast<double>(range.lo);
  const int steps = static_cast<int>(std::ceil(std::log(whole) / std::log(factor) - 1e-9));
  for (int i = 1; i < steps; ++i) {
    const double size = static_cast<double>(range.lo) * std::pow(whole, double(i) / steps);
    const int64_t power = int64_t{1} << std::lround(std::log2(size));
    if (power > grid.back() && power < range.hi) grid.push_back(power);
  }
  if (range.hi > grid.back()) grid.push_back(range.hi);
  return grid;
}

int64_t MiddleOf(int64_t lo, int64_t hi) {
  const double middle = std::sqrt(static_cast<double>(lo) * static_cast<double>(hi));
  for (const int64_t size : {Rounded(middle, kDigits), lo + (hi - lo) / 2}) {
    if (size > lo && size < hi) return size;
  }
  return lo;
}

absl::StatusOr<Changeover> FindCrossover(int64_t lo, int64_t hi,
                                         absl::FunctionRef<absl::StatusOr<double>(int64_t)> ratio) {
  CC_CHECK(1 <= lo && lo < hi);
  const auto factor = [&] { return static_cast<double>(hi) / static_cast<double>(lo); };
  while (factor() >= kNarrow) {
    const int64_t middle = MiddleOf(lo, hi);
    if (middle == lo) break;
    ASSIGN_OR_RETURN(const double of, ratio(middle));
    if (of < kAlike && of > 1 / kAlike) return Changeover{middle, factor()};
    (of > 1 ? hi : lo) = middle;
  }
  return Changeover{std::max(MiddleOf(lo, hi), lo + 1), factor()};
}

std::vector<int> FewestChanges(absl::Span<const std::vector<double>> us, double tie) {
  std::vector<int> chosen;
  while (chosen.size() < us.size()) {
    const int from = static_cast<int>(chosen.size());
    int best = -1, reach = from - 1;
    double best_us = 0;
    for (int v = 0; v < std::ssize(us[from]); ++v) {
      const int end = ReachOf(us, tie, from, v);
      if (end < from) continue;
      if (end < reach || (end == reach && us[from][v] >= best_us)) continue;
      best = v;
      reach = end;
      best_us = us[from][v];
    }
    CC_CHECK(best >= 0);
    chosen.resize(reach + 1, best);
  }
  return chosen;
}

std::string MainSymbolOf(const SizeRanges& ranges) {
  const auto width = [](const auto& of) {
    return static_cast<double>(of.second.hi) / static_cast<double>(of.second.lo);
  };
  return absl::c_max_element(ranges,
                             [&](const auto& a, const auto& b) { return width(a) < width(b); })
      ->first;
}

std::vector<SizeBucket> BucketsWithin(absl::Span<const SizeBucket> buckets,
                                      const SizeRanges& ranges) {
  std::vector<SizeBucket> within;
  for (const SizeBucket& bucket : buckets) {
    std::optional<SizeRanges> box = CommonOf(bucket.box, ranges);
    if (!box.has_value()) continue;
    within.push_back(bucket);
    within.back().box = *std::move(box);
  }
  const std::string main = MainSymbolOf(ranges);
  absl::c_sort(within, [&](const SizeBucket& a, const SizeBucket& b) {
    return CornerOf(a.box, main) < CornerOf(b.box, main);
  });
  return within;
}

std::optional<SizeRanges> FirstUncovered(const SizeRanges& ranges,
                                         absl::Span<const SizeBucket> buckets) {
  std::vector<SizeRanges> left = {ranges};
  for (const SizeBucket& bucket : buckets) {
    std::vector<SizeRanges> rest;
    for (const SizeRanges& box : left) CutOut(bucket.box, box, rest);
    left = std::move(rest);
  }
  return left.empty() ? std::nullopt : std::optional<SizeRanges>(left.front());
}

bool Contains(const SizeRanges& box, const Sizes& sizes) {
  return box.size() == sizes.size() && absl::c_all_of(box, [&](const auto& of) {
           const auto size = sizes.find(of.first);
           return size != sizes.end() && !size->second.is_list &&
                  of.second.Contains(size->second.sizes[0]);
         });
}

int BucketOf(absl::Span<const SizeBucket> buckets, const Sizes& sizes) {
  for (int b = static_cast<int>(buckets.size()) - 1; b >= 0; --b) {
    if (Contains(buckets[b].box, sizes)) return b;
  }
  return -1;
}

int NearestBucket(absl::Span<const SizeBucket> buckets, const Sizes& sizes) {
  int nearest = -1;
  double least = std::numeric_limits<double>::infinity();
  for (int b = 0; b < std::ssize(buckets); ++b) {
    double distance = 0;
    for (const auto& [symbol, range] : buckets[b].box) {
      const auto size = sizes.find(symbol);
      const bool known = size != sizes.end() && !size->second.is_list;
      distance += known ? Distance(range, size->second.sizes[0]) : least;
    }
    if (distance >= least) continue;
    least = distance;
    nearest = b;
  }
  return nearest;
}

}  // namespace coconet
