#pragma once

#include "autotune/planning/iteration_plan.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

/// A schedule whose program computes some values more than once.
struct CopiedSchedule {
  Schedule schedule;
  int copies = 0;  // operations that are computed again
};

/// Fusion with duplication: kernels compute again what they would take from other kernels, instead
/// of waiting for it and reading it. Equivalent elementwise operations (PlanGraph::alike) get
/// copies together, each for its users in other kernels than its own; one class after the other, as
/// long as the first plan of the program with the copies is faster. They are one Recompute of the
/// plan's schedule.
CopiedSchedule WithCopies(const IterationPlan& plan);

}  // namespace coconet
