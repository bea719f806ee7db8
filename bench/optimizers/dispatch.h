#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "autotune/session/session.h"
#include "bench/harness/finding.h"
#include "bench/harness/rounds.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// In a world of 1: the overhead of a call of Run. Two findings of ours: "BoundPlan::Run" of a
/// kernel that does nothing, and "BoundProgram::Run" of a program over one element, with facts
/// "allocations" and "locks" per thousand calls.
absl::StatusOr<std::vector<Finding>> MeasureDispatch(Rank& rank, const SessionOptions& options,
                                                     const RoundTerms& terms);

}  // namespace coconet::bench
