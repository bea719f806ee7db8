#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/search/variant_runner.h"
#include "autotune/search/variants.h"
#include "coconet/ir/graph.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// How a chosen part of a program's variants compares with many more.
struct Screened {
  std::vector<double> us;  // by variant: the median of its first rounds; 0: it was not timed
  int best = -1;           // of all that were timed
  int best_of_part = -1;
  double ratio = 0;  // of the time of `best_of_part` over that of `best`, in rounds of these two
  int timed = 0;
};

/// Collective. Times the variants of `part`; then all of the schedules that were fastest, and
/// `others` more that a seed draws; then the fastest of the part and of all again, in turns; and at
/// last the best of each in rounds that decided nothing before, so that noise in the choice of the
/// best does not count as speed.
absl::StatusOr<Screened> Screen(Rank& rank, const Graph& program, const VariantSet& set,
                                absl::Span<const int> part, int others);

}  // namespace coconet::bench
