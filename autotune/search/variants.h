#ifndef COCONET_AUTOTUNE_SEARCH_VARIANTS_H_
#define COCONET_AUTOTUNE_SEARCH_VARIANTS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/store/record.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "jit/lower/lower.h"

namespace coconet {

/// What is compiled, checked and timed.
struct Variant {
  Schedule schedule;
  Config config;
  /// Variants of a group have the same schedule and protocol, and differ in numbers. The first of a
  /// group is its plainest.
  int group = 0;
  /// The variant lowered for the ranks it runs on, where somebody has done so; null before.
  std::shared_ptr<const Lowered> lowered = nullptr;
};

/// Everything to try for a program, simplest first: every schedule that its sizes leave worthwhile
/// (worthwhile.h), with every config.
struct VariantSet {
  std::vector<Variant> variants;
  /// The AllReduces as written, computations fused, plainest config: what a careful user has
  /// without us.
  int baseline = -1;
};

/// `program` is bound. A pure function of its arguments. Of the schedules that `admits` admits,
/// empty: of all; then the baseline may be another one, the plainest of them. FailedPrecondition
/// when nothing is possible, which says why.
absl::StatusOr<VariantSet> EnumerateVariants(
    const Graph& program, const ConfigSpace& space,
    const std::function<bool(const Schedule&)>& admits = nullptr);

/// Names the list, so that ranks can see that theirs are the same.
std::string DigestOf(const VariantSet& set);

/// The variant as results list it, not yet tried.
VariantResult Describe(const Variant& variant);

/// The same program with every large extent small and odd, so that all elements can be checked and
/// tails are not multiples of anything: equal extents stay equal, and 0 and 1 what they are; of a
/// list a few tensors. Sizes are arguments of kernels, so these are the same kernels. With
/// `multiple`, extents are odd multiples of that where there is room.
Graph Shrink(const Graph& program, int64_t multiple = 1);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SEARCH_VARIANTS_H_
