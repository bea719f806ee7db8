#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

/// A body for RunWorld: AllToAlls of tensors as they lie, whole and in part, with all rows in use
/// and with some, one and several at once, drawn from rank 0's `seed`. Each element that a step
/// moves has come to where it belongs, and no other has changed.
absl::Status CheckAllToAlls(Rank& rank, uint64_t seed);
/// With a fresh seed, which errors name.
absl::Status CheckAllToAllsOfAFreshSeed(Rank& rank);

}  // namespace coconet
