#pragma once

#include "absl/status/status.h"
#include "autotune/cost/rates.h"
#include "autotune/runner/binaries.h"
#include "runtime/rank.h"

namespace coconet {

/// How much longer a plan takes than the longer one of its two lanes alone, over the time of the
/// shorter one: where the computation is the longer one, and where the collectives are.
struct LaneExcess {
  double beside_computation = 0, beside_collectives = 0;
};

/// The slowdowns, both at least 1, of computation and of collectives while both run, that explain
/// the excess best: while the shorter lane runs, which takes s times as long as alone, the longer
/// one proceeds at 1 / its own slowdown. Where they merely take turns on one core, so that many
/// pairs explain it, the most equal ones.
void FitInterference(const LaneExcess& excess, Rates& rates);

/// Collective: runs a kernel and an AllReduce on two lanes at once, and fits
/// rates.computation_beside and collective_beside.
absl::Status MeasureInterference(Rank& rank, Binaries& binaries, Rates& rates);

}  // namespace coconet
