#pragma once

#include "absl/functional/function_ref.h"
#include "autotune/planning/iteration_plan.h"

namespace coconet {

/// The plan that the search begins with: FusedPlan, then OrderForGradients and MakeBuckets in turns
/// as long as they gain. `visit` sees each plan on the way, as accepted, and its time; it returns
/// false to end the construction there.
IterationPlan FirstPlan(const PlanGraph& graph,
                        absl::FunctionRef<bool(const IterationPlan& plan, double us)> visit);

/// Kernels of the items of ComputeGroups, then of the pairs whose fusion saves most, as long as one
/// saves: by the model's times alone, whatever waits for what. Lanes have some order.
IterationPlan FusedPlan(const PlanGraph& graph);

/// The order of groups in which gradients become ready as early as possible. Collectives are
/// ordered by the work before them; computation, in a list schedule, goes before the collectives
/// that need it first; groups that no collective needs (updates) run when lane 0 has nothing else
/// to do. Among several such orders the plan gets the one with the least simulated time, or keeps
/// its own. Returns the time; accepts.
double OrderForGradients(IterationPlan& plan);

/// Partitions the collectives of lane 1, in their order, into buckets of successive ones, so that
/// the last ends as early as possible: dynamic programming over the times at which they are ready,
/// O(n^2). Accepts if simulation shows a gain. Returns the time.
double MakeBuckets(IterationPlan& plan);

}  // namespace coconet
