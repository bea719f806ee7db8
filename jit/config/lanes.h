#pragma once

#include <vector>

#include "jit/config/units.h"

namespace coconet {

/// The units of a schedule that run beside others, and when. Units of lane 0 run in their order.
/// With Units::concurrent, collectives by a library that are in no overlap run on lane 1, in their
/// order, too; a unit waits for those of the other lane that it needs. Units of lane 0 that
/// communicate (a kernel, an overlap) run beside none of them: GPUs must have all their blocks
/// resident, which those of a library's collective, waiting for other ranks, could prevent.
struct UnitLanes {
  std::vector<bool> beside;  // by unit: it runs on lane 1, as a whole
  std::vector<bool> alone;   // by unit: it runs on lane 0, beside nothing on lane 1
  /// By unit: it may still run when the step has ended and the next one has begun. It is one of the
  /// last of lane 1, no unit waits for it, and it neither reads inputs nor writes outputs, which
  /// belong to the host between steps.
  std::vector<bool> outlasts;
  /// By unit: the last unit of the other lane that must be done before it begins; -1: none. Waits
  /// within an overlap are not counted.
  std::vector<int> awaits;
};

UnitLanes LanesOf(const Units& u);

}  // namespace coconet
