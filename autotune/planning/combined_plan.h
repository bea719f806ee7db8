#pragma once

#include "autotune/planning/iteration_plan.h"

namespace coconet {

/// What XLA combines collectives to by default (CombineThreshold in its GPU compiler).
inline constexpr double kXlaCombinedBytes = 30.0 * (1 << 20) + 7;

/// The plan that does no more than XLA does: kernels of FusedPlan; launches in the program's order;
/// collectives of one kind and dtype that follow one another are one call as long as they have at
/// most `bytes` together and do not depend on each other. Collectives run beside what comes after
/// them.
IterationPlan CombinedPlan(const PlanGraph& graph, double bytes = kXlaCombinedBytes);

}  // namespace coconet
