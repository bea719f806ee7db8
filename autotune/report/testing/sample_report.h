#pragma once

#include "autotune/planning/plan_iteration.h"
#include "autotune/report/report.h"

namespace coconet {

/// A report as a large cache gives it, the same each time: a program at eight sizes with crossovers
/// between its schedules, one with schedules of hundreds of characters, one on simulated GPUs, one
/// whose name is markup, failures with long reasons, and thousands of predictions.
Report SampleReport();

/// The plan of a training step with layers.
PlannedIteration SamplePlan();

/// The name of a program of SampleReport that must not become markup.
inline constexpr char kHostileName[] = "<script>throw new Error('ran')</script>&\"'";

}  // namespace coconet
