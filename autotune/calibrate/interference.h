#pragma once

#include "absl/status/status.h"
#include "autotune/cost/rates.h"
#include "autotune/runner/binaries.h"
#include "runtime/rank.h"

namespace coconet {

/// The time of a plan beyond that of the longer one of its two lanes alone, over the time of the
/// shorter one: if the computation is longer, and if the collectives are.
struct LaneExcess {
  double beside_computation = 0, beside_collectives = 0;
};

/// Fits the slowdowns, both at least 1, of computation and of collectives while both run, to the
/// excess: while the shorter lane runs, which takes s times as long as alone, the longer one
/// proceeds at 1 / its own slowdown. If many pairs explain it, because they merely take turns on
/// one core, fits the most equal ones.
void FitInterference(const LaneExcess& excess, Rates& rates);

/// Collective: runs a kernel and an AllReduce on two lanes at once, and fits
/// rates.computation_beside and collective_beside.
absl::Status MeasureInterference(Rank& rank, Binaries& binaries, Rates& rates);

}  // namespace coconet
