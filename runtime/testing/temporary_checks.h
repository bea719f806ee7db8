#pragma once

#include <string>

#include "runtime/plan.h"
#include "runtime/plan_memory.h"

namespace coconet {

/// Names two temporaries that lie in the same memory although a step that uses one may run beside,
/// or between, steps that use the other; "" if there are none. Looks at every two steps.
std::string WhyOverlapping(const Plan& plan, const TemporaryPlaces& places, int stage_rank);

}  // namespace coconet
