#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/search/parts.h"
#include "autotune/store/record.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "jit/lower/lower.h"

namespace coconet {

/// Returns the schedules of one bound program without those that its sizes make pointless, in the
/// same order. `schedules` begin with the program as written. Pointless are
/// - slices of a matrix, or of more dimensions, that leave half of the ranks without elements, over
/// a
///   dimension that the program itself does not slice in this way;
/// - slices over `flat` that equal those over a dimension, since all extents before it are 1, where
///   there is the same schedule with slices over that dimension.
std::vector<Schedule> Worthwhile(const std::vector<Schedule>& schedules, int ranks);

/// A schedule with its config: the unit that is compiled, verified and timed.
struct Variant {
  Schedule schedule;
  Config config;
  /// Variants of a group have the same schedule and protocol, and differ in numbers. The first of a
  /// group is its plainest.
  int group = 0;
  /// The variant lowered for the ranks it runs on, once a caller has lowered it; null before.
  std::shared_ptr<const Lowered> lowered = nullptr;
  /// Where the parts of the program are scheduled one by one: how. Then `schedule` is ScheduleOf
  /// it, and `config` says nothing.
  std::shared_ptr<const Combination> apart = nullptr;
};

/// The variant that combines parts which were tuned apart.
Variant VariantOf(Combination apart);

/// The text that a record names the variant's schedule by: its trace, or that of a combination.
std::string TraceOf(const Variant& variant);

/// Lower, or LowerApart.
absl::StatusOr<Lowered> LowerVariant(const Variant& variant, const Target& target);

/// Whether the variants of one set have the same schedule; those that do follow one another.
bool SameSchedule(const Variant& a, const Variant& b);

/// All variants to try for a program, simplest first: every worthwhile schedule (Worthwhile) with
/// every config.
struct VariantSet {
  std::vector<Variant> variants;
  /// Index of the variant that a careful user has without this library: AllReduces as written,
  /// computations fused, plainest config.
  int baseline = -1;
};

/// A pure function of its arguments. `program` is bound. Where `admits` is set, only schedules that
/// it accepts count, and the plainest of them is the baseline where the usual one is not accepted.
/// FailedPrecondition, with the reason, when there is no variant. `go_on` as of DeriveOptions: once
/// it returns false, the set has the variants of the schedules that were found so far. `few`
/// likewise.
absl::StatusOr<VariantSet> EnumerateVariants(
    const Graph& program, const ConfigSpace& space,
    const std::function<bool(const Schedule&)>& admits = nullptr,
    const std::function<bool()>& go_on = nullptr, bool few = false);

/// Digest of the set, by which ranks check that theirs are equal.
std::string DigestOf(const VariantSet& set);

/// The result of a variant that is not yet tried.
VariantResult Describe(const Variant& variant);

/// A size at which variants are verified.
struct SmallSize {
  /// About how many elements the largest tensor has: by default more than two chunks per rank for a
  /// few ranks.
  int64_t elements = 10007;
  int64_t multiple = 1;  // extents are odd multiples of it where possible
};

/// Returns the program with every large extent replaced by a small odd one, so that all elements
/// can be checked, and tails are no multiples of anything. Equal extents stay equal, 0 and 1 stay
/// what they are, and a list keeps a few of its tensors. A program with a reshape to extents that
/// none of its declarations has stays what it is. The kernels stay the same, since sizes are
/// arguments of kernels.
Graph Shrink(const Graph& program, const SmallSize& to = {});
/// What Shrink replaces each extent of a program by.
std::map<int64_t, int64_t> SmallExtents(const Graph& program, const SmallSize& to);

}  // namespace coconet
