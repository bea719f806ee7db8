#pragma once

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

/// A body for RunWorld: several AllReduces at once, of all dtypes and operations, with and without
/// elements, in place and not, drawn from rank 0's COCONET_SEED, or a fresh one, which errors name.
/// Each result has the bits of an AllReduce alone, and nothing else has changed.
absl::Status CheckAllReduces(Rank& rank);

}  // namespace coconet
