#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "autotune/calibrate/calibrate.h"
#include "autotune/runner/binaries.h"
#include "runtime/rank.h"

namespace coconet {

/// Collective: AllReduces of several sizes, each split by node, and what their collectives within
/// and across nodes take. {} where all ranks are of one node, or each of its own.
absl::StatusOr<std::vector<MeasuredWork>> MeasureCollectivesByNode(Rank& rank, Binaries& binaries);

}  // namespace coconet
