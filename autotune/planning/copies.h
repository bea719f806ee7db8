#pragma once

#include "autotune/planning/iteration_plan.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

/// A schedule whose program computes some values more than once.
struct CopiedSchedule {
  Schedule schedule;
  int copies = 0;  // operations that are computed again
};

/// Fusion with duplication: kernels compute again what they take from other kernels, instead of
/// waiting for it and reading it. Elementwise operations that are alike (PlanItem::alike) get
/// copies together, each one for its users in other kernels than its own; a kind of them after the
/// other, as long as the first plan of the program with the copies is faster. They are one
/// Recompute of the plan's schedule.
CopiedSchedule WithCopies(const IterationPlan& plan);

}  // namespace coconet
