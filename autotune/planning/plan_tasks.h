#pragma once

#include "autotune/planning/iteration_plan.h"
#include "autotune/simulation/task_graph.h"

namespace coconet {

/// The groups of a plan as tasks: first those of lane 0, by position, then those of lane 1, with
/// their orders. Values of items that other groups take live from group to group; inputs and states
/// live all the time. A value whose store into a state is in its own group is the state's.
TaskGraph TasksOf(const IterationPlan& plan);
/// The same without labels and values.
TaskGraph TimesOf(const IterationPlan& plan);
/// The group of a task.
int GroupOfTask(const IterationPlan& plan, int task);

/// The least time of any partition of the plan's collectives into buckets, of any order and any
/// lanes of these and the plan's kernels, if a call of several collectives takes at least their
/// shares, by bytes, of a call of all.
double BoundOf(const IterationPlan& plan);

}  // namespace coconet
