#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "autotune/cost/cost_model.h"
#include "autotune/planning/plan_search.h"
#include "autotune/simulation/simulate.h"
#include "autotune/simulation/task_graph.h"
#include "coconet/ir/graph.h"
#include "jit/config/target.h"

namespace coconet {

/// A plan in figures, by simulation.
struct PlanFigures {
  double us = 0;
  double bound_us = 0;          // BoundOf
  double computation_us = 0;    // of all kernels, one after the other
  double communication_us = 0;  // of all collectives
  double exposed_us = 0;        // communication beside which nothing is computed
  int64_t peak_bytes = 0;       // of values, inputs and states of a rank
  int kernels = 0, collectives = 0;

  /// The lower bound of any plan with these kernels and collectives: each lane has to do its work.
  double full_overlap_us() const { return std::max(computation_us, communication_us); }
};
PlanFigures FiguresOf(const IterationPlan& plan);

/// A plan of a program that need not run here, and the plan that it is compared with.
struct PlannedIteration {
  int operations = 0, launches = 0;  // of the program, and without kernels
  PlanFigures found;                 // by the search
  PlanFigures combined;              // CombinedPlan: at most what XLA does
  int64_t evaluations = 0;           // simulated plans
  TaskGraph tasks;                   // of the found plan
  Timeline timeline;
};

/// Plans a bound program, which may have opaque operations, for the ranks of the target, with
/// gradients reduced as a whole. Errors as InitialSchedule.
absl::StatusOr<PlannedIteration> PlanIteration(const Graph& program, const Target& target,
                                               const CostModel& model,
                                               const PlanSearchOptions& search = {});

}  // namespace coconet
