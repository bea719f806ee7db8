#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "autotune/calibrate/calibrate.h"
#include "autotune/runner/binaries.h"
#include "runtime/rank.h"

namespace coconet {

/// Collective: times AllReduces of several sizes, each split by node: their collectives within and
/// across nodes. {} if all ranks are of one node, or each of its own.
absl::StatusOr<std::vector<MeasuredWork>> MeasureCollectivesByNode(Rank& rank, Binaries& binaries);

}  // namespace coconet
