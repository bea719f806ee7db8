#pragma once

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

/// Checks of plans with matrix products and with two lanes in every world: bodies like those of
/// checks.h.

/// Products of slices, one after another and with two threads, in a plan.
absl::Status CheckMatrixProducts(Rank& rank);
/// Products on both lanes at once, of the same operands, and a collective behind those of lane 1.
absl::Status CheckProductsOnBothLanes(Rank& rank);
/// Random plans of many small steps on two lanes, each of which needs results of earlier ones.
absl::Status CheckOrderOfLanes(Rank& rank);
/// Library collectives of many sizes on both lanes at once, and a collective kernel on one of them.
absl::Status CheckCollectivesOnBothLanes(Rank& rank);
/// Steps whose last collective goes on while the next one begins.
absl::Status CheckStepsBesideOthers(Rank& rank);
/// The last rank returns `why` after a step, when the others are in the next one or between steps.
/// They return the status of their last step, and Wait's is the same.
absl::Status LeaveOthersBetweenSteps(Rank& rank, const absl::Status& why);
/// The last rank returns `why` while the others wait for it: lane 0 in a kernel, lane 1 in the
/// library. They return Run's status.
absl::Status LeaveOthersInBothLanes(Rank& rank, const absl::Status& why);
/// The last rank waits until the others are done, and never runs. They get DeadlineExceeded from
/// lane 0 after `timeout_s`, although lane 1 may wait longer.
absl::Status OutwaitLaneZero(Rank& rank, double timeout_s);

}  // namespace coconet
