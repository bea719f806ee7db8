#pragma once

#include <vector>

#include "jit/lower/programs.h"
#include "runtime/plan.h"

namespace coconet {

/// Plan::outlasting of a plan whose launches know their steps; those of an overlap have all of its
/// steps. A step that outlasts a run ends before a launch of the next run that uses its buffers,
/// unless both only read, and before one that communicates on lane 0.
std::vector<Outlasting> OutlastingSteps(const Programs& programs);

}  // namespace coconet
