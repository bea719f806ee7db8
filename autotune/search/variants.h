#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/search/parts.h"
#include "autotune/store/phases.h"
#include "autotune/store/record.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "jit/lower/lower.h"

namespace coconet {

/// Returns the schedules of one bound program without those that its sizes make pointless, in the
/// same order. `schedules` begin with the program as written. Pointless are
/// - slices of a matrix, or of more dimensions, over a dimension that the program itself does not
///   slice in this way, that leave half of the ranks without elements;
/// - slices over `flat` that equal those over a dimension, since all extents before it are 1, if
///   there is the same schedule with slices over that dimension.
std::vector<Schedule> Worthwhile(const std::vector<Schedule>& schedules, int ranks);

/// A schedule with its config: the unit that is compiled, verified and timed.
struct Variant {
  Schedule schedule;
  Config config;
  /// Variants of a group have the same schedule, protocol and lanes, so that their values lie in
  /// the same buffers, and differ in numbers. The first of a group is its plainest.
  int group = 0;
  /// The expected microseconds of a step (SchedulePrior); 1 if there is no expectation.
  double prior_us = 1;
  /// The variant lowered for the ranks it runs on, once a caller has lowered it; null before.
  std::shared_ptr<const Lowered> lowered = nullptr;
  /// How the parts of the program are scheduled, if they are scheduled one by one. Then `schedule`
  /// is ScheduleOf it, and `config` has no meaning.
  std::shared_ptr<const Combination> apart = nullptr;
};

/// The variant that combines parts which were tuned apart.
Variant VariantOf(Combination apart);

/// The text that names the variant's schedule in a record: its trace, or the text of a combination.
std::string TraceOf(const Variant& variant);

/// Lower, or LowerApart.
absl::StatusOr<Lowered> LowerVariant(const Variant& variant, const Target& target);

/// Whether two variants of one set have the same schedule; such variants follow one another.
bool SameSchedule(const Variant& a, const Variant& b);

/// Whether a variant of that schedule and config is wanted; empty: all are.
using Admits = std::function<bool(const Schedule&, const Config&)>;

/// All variants to try for a program, simplest first: every worthwhile schedule (Worthwhile) with
/// every config.
struct VariantSet {
  std::vector<Variant> variants;
  /// Index of the variant that a careful user writes without this library: AllReduces as written,
  /// computations fused, plainest config.
  int baseline = -1;
  /// Variants that KeptVariants has left out.
  int left_out = 0;
};

/// Appends a schedule with each of its configs. Successive variants with the same protocol, lanes
/// and buckets are a group.
void AddVariants(const Schedule& schedule, absl::Span<const Config> configs,
                 std::vector<Variant>& variants);

/// A pure function of its arguments. `program` is bound. With `admits`, only variants that it
/// accepts count, and the plainest of them is the baseline if the usual one is not accepted.
/// FailedPrecondition, with the reason, if there is no variant. `go_on` as of DeriveOptions: once
/// it returns false, the set has the variants of the schedules that were found so far. `few` as of
/// DeriveOptions. `planned`: schedules of the program that are variants after those, unless they
/// are among them. `phases` counts the derivation apart; may be null.
absl::StatusOr<VariantSet> EnumerateVariants(const Graph& program, const ConfigSpace& space,
                                             const Admits& admits = nullptr,
                                             const std::function<bool()>& go_on = nullptr,
                                             bool few = false,
                                             absl::Span<const Schedule> planned = {},
                                             Phases* phases = nullptr);

/// Digest of the set, by which ranks check that theirs are equal.
std::string DigestOf(const VariantSet& set);

/// The result of a variant that is not yet tried.
VariantResult Describe(const Variant& variant);

}  // namespace coconet
