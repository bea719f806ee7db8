#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/cost/cost_model.h"
#include "autotune/planning/planned_schedules.h"
#include "coconet/ir/graph.h"
#include "jit/config/target.h"

namespace coconet::bench {

/// Distinct plans of one program, the best that a search of `seconds` finds among them; the others
/// come from it, and from the plan that the search begins with, by random edits of kernels,
/// buckets and order, and are simulated to take at most twice as long. Calls whose
/// arguments are equal, except `seconds`, make equal edits.
absl::StatusOr<std::vector<PlannedSchedule>> DrawPlans(const Graph& program, const Target& target,
                                                       const CostModel& model, int count,
                                                       double seconds, uint64_t seed);

}  // namespace coconet::bench
