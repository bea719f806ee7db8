#ifndef COCONET_JIT_LOWER_OVERLAP_STEPS_H_
#define COCONET_JIT_LOWER_OVERLAP_STEPS_H_

#include "absl/status/status.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "jit/lower/draft.h"
#include "jit/lower/unit_steps.h"

namespace coconet {

/// Adds the steps of an overlap of the schedule: piece by piece, or with Config::tiles tile by
/// tile. What communicates beside the rest is on lane 1; steps wait for those of the other lane
/// that they need.
absl::Status AddOverlap(const Schedule& schedule, const Units& u, const Units::Chain& chain,
                        const Config& config, const Target& target, UnitSteps& steps, Draft& draft);

}  // namespace coconet

#endif  // COCONET_JIT_LOWER_OVERLAP_STEPS_H_
