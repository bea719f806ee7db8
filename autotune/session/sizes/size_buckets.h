#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/store/families/bucket_rows.h"
#include "autotune/store/families/size_ranges.h"
#include "coconet/ir/types.h"

namespace coconet {

// The arithmetic of buckets of sizes: nothing here tunes, or knows a program.

/// The sizes of a range that are tuned: both ends, and powers of two between them, each about
/// `factor` times the one before.
std::vector<int64_t> GridOf(const SizeRange& range, double factor);

/// The size in the middle of two by their logarithms, a number with few binary digits, as real
/// sizes have. `lo` if no size is between them.
int64_t MiddleOf(int64_t lo, int64_t hi);

/// The boundary of two buckets.
struct Changeover {
  int64_t at = 1;      // the first size of the upper one
  double bracket = 1;  // the factor within which it is known
};

/// Finds where the variant that is faster at `hi` begins to be faster than the one that is faster
/// at `lo`. `ratio(size)` is the lower variant's time over the upper one's. Ends where the bracket
/// is below a factor of 1.2, or at a size at which the two differ by less than 3 %.
absl::StatusOr<Changeover> FindCrossover(int64_t lo, int64_t hi,
                                         absl::FunctionRef<absl::StatusOr<double>(int64_t)> ratio);

/// A variant for each of successive points, so that the variant changes as seldom as possible, and
/// takes at most `tie` times as long as the fastest of its point. `us[point][variant]`: 0 if it was
/// not timed there; each point has a variant that was timed.
std::vector<int> FewestChanges(absl::Span<const std::vector<double>> us, double tie);

/// The symbol whose sizes differ most.
std::string MainSymbolOf(const SizeRanges& ranges);

/// The buckets cut to the ranges, in ascending order, those of the main symbol last.
std::vector<SizeBucket> BucketsWithin(absl::Span<const SizeBucket> buckets,
                                      const SizeRanges& ranges);
/// Sizes of the ranges that no bucket has; none: the buckets have them all.
std::optional<SizeRanges> FirstUncovered(const SizeRanges& ranges,
                                         absl::Span<const SizeBucket> buckets);

/// Whether the box has these sizes, for just its symbols.
bool Contains(const SizeRanges& box, const Sizes& sizes);
/// The last bucket with these sizes; -1: there is none. Takes no memory.
int BucketOf(absl::Span<const SizeBucket> buckets, const Sizes& sizes);
/// The bucket that is nearest to these sizes by logarithms; -1: none has their symbols.
int NearestBucket(absl::Span<const SizeBucket> buckets, const Sizes& sizes);

}  // namespace coconet
