#ifndef COCONET_RUNTIME_TESTING_LANE_CHECKS_H_
#define COCONET_RUNTIME_TESTING_LANE_CHECKS_H_

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

/// What plans with matrix products and with two lanes must do in every world: bodies as those of
/// checks.h.

/// Products of slices, one after another and with two threads, in a plan.
absl::Status CheckMatrixProducts(Rank& rank);
/// Products on both lanes at once, of the same operands, and a collective behind those of lane 1.
absl::Status CheckProductsOnBothLanes(Rank& rank);
/// Random plans of many small steps on two lanes, each of which needs the results of some before
/// it.
absl::Status CheckOrderOfLanes(Rank& rank);
/// Library collectives of many sizes on both lanes at once, and a collective kernel on one of them.
absl::Status CheckCollectivesOnBothLanes(Rank& rank);
/// The last rank returns `why` while the others' lane 0 waits for it in a kernel, and lane 1 in the
/// library; they return what Run says.
absl::Status LeaveOthersInBothLanes(Rank& rank, const absl::Status& why);
/// The last rank waits until the others are done, and never runs. They get DeadlineExceeded after
/// `timeout_s`, from lane 0, though lane 1 may wait for longer.
absl::Status OutwaitLaneZero(Rank& rank, double timeout_s);

}  // namespace coconet

#endif  // COCONET_RUNTIME_TESTING_LANE_CHECKS_H_
