#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "autotune/session/session_state.h"
#include "autotune/session/sizes/range_tuner.h"
#include "autotune/session/sizes/tuned_sizes.h"
#include "autotune/store/families/size_ranges.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// Collective. The program over these ranges, from the tuning cache or tuned now (TuneRange).
/// `program` has symbols, and it and the valid `ranges` are equal on all ranks. NotFound if the
/// policy forbids tuning and the cache does not know the whole range.
absl::StatusOr<std::shared_ptr<TunedSizesRep>> FindOrTuneRange(
    const std::shared_ptr<SessionState>& state, const Graph& program, const SizeRanges& ranges);

}  // namespace coconet
