#pragma once

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "jit/config/lanes.h"
#include "jit/lower/programs.h"
#include "runtime/plan.h"

namespace coconet {

/// Plan::outlasting of a plan in which each unit has the steps [first, second) of `steps`; those of
/// an overlap have all of its steps. A step that outlasts a run ends before a unit of the next run
/// that uses its buffers, unless both only read, and before one that communicates on lane 0.
std::vector<Outlasting> OutlastingSteps(const Programs& programs, const UnitLanes& lanes,
                                        absl::Span<const std::pair<int, int>> steps);

}  // namespace coconet
