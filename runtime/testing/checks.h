#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rank.h"

namespace coconet {

/// Checks of every world, whatever its ranks are: bodies for RunWorld that return what went wrong.

/// Collective. Rank 0's COCONET_SEED, or a fresh one.
absl::StatusOr<uint64_t> SeedOfRank0(Rank& rank);

absl::Status CheckExchange(Rank& rank);
/// Every collective, group, type, kind of reduction and way of calling, at odd sizes and 0, in and
/// out of place, compared with a sum in double: each with each type and with each size;
/// CheckAllCollectives: with each size of each type.
absl::Status CheckCollectives(Rank& rank);
absl::Status CheckAllCollectives(Rank& rank);
/// The same at a size that libraries split into many messages.
absl::Status CheckLargeCollectives(Rank& rank);
/// The same as steps of a plan: of one type; of all types with a third of the ways each; of all
/// types in all ways.
absl::Status CheckCollectiveSteps(Rank& rank);
absl::Status CheckCollectiveStepsOfAllTypes(Rank& rank);
absl::Status CheckAllCollectiveStepsOfAllTypes(Rank& rank);
/// Ranks that share memory, and only those, see each other's writes; memory is zero-filled and
/// aligned; all ranks refuse what does not fit.
absl::Status CheckMemory(Rank& rank);
/// A hand-written kernel that sums over a node, several times, with 1 and 3 blocks, in two bound
/// plans at once.
absl::Status CheckPlans(Rank& rank);
/// CheckSyncGuards finds flags and counters behind their buffers, and only those.
absl::Status CheckSyncGuardsOfPlans(Rank& rank);
/// The last rank never runs its step: the others on its node get DeadlineExceeded after
/// `timeout_s`, and the same again from a second Run.
absl::Status CheckDeadline(Rank& rank, double timeout_s);
/// Runs a collective kernel `steps` times; calls before(step) before each.
absl::Status RunSteps(Rank& rank, int steps, const std::function<void(int)>& before);
/// All ranks refuse plans and buffers that do not fit together, with the expected messages.
absl::Status CheckBindErrors(Rank& rank);
/// The last rank returns `why` while the others wait for it in a step; they return Run's status.
absl::Status LeaveOthersInAStep(Rank& rank, const absl::Status& why);

}  // namespace coconet
