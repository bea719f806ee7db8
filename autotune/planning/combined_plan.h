#pragma once

#include "autotune/planning/iteration_plan.h"

namespace coconet {

/// The threshold up to which XLA combines collectives by default (CombineThreshold in its GPU
/// compiler).
inline constexpr double kXlaCombinedBytes = 30.0 * (1 << 20) + 7;

/// The plan that does no more than XLA does: kernels of FusedPlan; launches in the program's order;
/// successive collectives of one kind and dtype are one call as long as they have at most `bytes`
/// together and do not depend on each other. Collectives run beside later launches.
IterationPlan CombinedPlan(const PlanGraph& graph, double bytes = kXlaCombinedBytes);

}  // namespace coconet
