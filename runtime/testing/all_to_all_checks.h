#pragma once

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

/// A body for RunWorld: AllToAlls of tensors as ranks store them, whole and in part, with all rows
/// in use and with some, one and several at once, drawn from rank 0's COCONET_SEED, or a fresh one,
/// which errors name. Each element that a step moves has come to where it belongs, and no other has
/// changed.
absl::Status CheckAllToAlls(Rank& rank);

}  // namespace coconet
