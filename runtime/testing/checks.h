#ifndef COCONET_RUNTIME_TESTING_CHECKS_H_
#define COCONET_RUNTIME_TESTING_CHECKS_H_

#include <functional>

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

/// What every world must do, whatever its ranks are: bodies for RunWorld that return what went
/// wrong.

absl::Status CheckExchange(Rank& rank);
/// Every collective, group, type, kind and way, at odd sizes and none, in and out of place, against
/// a sum in double.
absl::Status CheckCollectives(Rank& rank);
/// The same at a size that libraries cut into many messages.
absl::Status CheckLargeCollectives(Rank& rank);
/// The same as steps of a plan.
absl::Status CheckCollectiveSteps(Rank& rank);
absl::Status CheckCollectiveStepsOfAllTypes(Rank& rank);
/// Ranks that share memory, and no others, see each other's writes; memory is zero-filled and
/// aligned; what does not fit is refused on all ranks.
absl::Status CheckMemory(Rank& rank);
/// A hand-written kernel that sums over a node, several times over, with 1 and 3 blocks, in two
/// bound plans at once.
absl::Status CheckPlans(Rank& rank);
/// The last rank never runs its step: the others on its node get DeadlineExceeded after
/// `timeout_s`, twice the same.
absl::Status CheckDeadline(Rank& rank, double timeout_s);
/// Runs a collective kernel `steps` times; before each of them calls `before` with its number.
absl::Status RunSteps(Rank& rank, int steps, const std::function<void(int)>& before);
/// Plans and buffers that do not fit together are refused in words, on all ranks.
absl::Status CheckBindErrors(Rank& rank);
/// The last rank returns `why` while the others wait for it in a step; they return what Run says.
absl::Status LeaveOthersInAStep(Rank& rank, const absl::Status& why);

}  // namespace coconet

#endif  // COCONET_RUNTIME_TESTING_CHECKS_H_
