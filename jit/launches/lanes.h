#pragma once

#include "jit/launches/placed_launches.h"

namespace coconet {

/// Sets on which lane launches run, and what they wait for. Those of lane 0 run in their order. If
/// `concurrent` (Config::concurrent), collectives by a library that are in no overlap run on lane
/// 1, in their order, too; a launch waits for those of the other lane that it needs. Launches
/// of lane 0 that communicate (a kernel, an overlap) run beside none of them: GPUs must have all
/// their blocks resident, which those of a library's collective, waiting for other ranks, could
/// prevent.
void PlaceOnLanes(bool concurrent, PlacedLaunches& u);

}  // namespace coconet
