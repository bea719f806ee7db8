#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/cost/cost_model.h"
#include "autotune/planning/plan_search.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/target.h"

namespace coconet {

struct PlanningOptions {
  PlanSearchOptions search = {};  // of all searches together
  PlanStrategy strategy = PlanStrategy::kDirected;
  int schedules = 4;  // the most that are returned
  /// Also plans programs in which kernels compute again what they would wait for (copies.h).
  bool copies = false;
  /// Operations beyond which a program is not split: each Split, Reorder and Slice rewrites the
  /// whole program.
  int64_t most_rewritten = int64_t{1} << 19;
};

/// A plan as a schedule: kernels, buckets, and the order of launches.
struct PlannedSchedule {
  Schedule schedule = {};
  double us = 0, bound_us = 0;  // simulated; BoundOf
  double exposed_us = 0;        // communication beside which nothing is computed
  int64_t peak_bytes = 0;       // of values, inputs and states of a rank
  int copies = 0;               // operations that are computed again (Recompute)
  int refused_fusions = 0;      // of the plan's kernels, left out: FuseAll refuses them
};

/// The schedule of a plan, its kernels made by FuseAll. Kernels that are refused are left out and
/// counted, and their operations are launches of their own; `us` is then too low. Launches are
/// ordered by when they begin, so that Config::concurrent issues each lane's as planned.
PlannedSchedule PlannedScheduleOf(const IterationPlan& plan, double us);

/// Plans an iteration, with gradients reduced as a whole, and with AllReduces split and updates on
/// slices if these apply and the program is small enough. Returns the few best distinct plans, the
/// best first, none more than a quarter slower than the best; errors as InitialSchedule.
absl::StatusOr<std::vector<PlannedSchedule>> PlannedSchedules(const Graph& program,
                                                              const Target& target,
                                                              const CostModel& model,
                                                              const PlanningOptions& options = {});

}  // namespace coconet
