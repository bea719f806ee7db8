#pragma once

#include <string>

#include "runtime/plan.h"
#include "runtime/plan_memory.h"

namespace coconet {

/// Two temporaries that lie in the same memory although a step that uses one may run beside, or
/// between steps that use the other, in words; "" where there are none. Looks at every two steps.
std::string WhyOverlapping(const Plan& plan, const TemporaryPlaces& places, int stage_rank);

}  // namespace coconet
