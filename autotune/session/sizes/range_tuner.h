#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/session/session_state.h"
#include "autotune/session/sizes/tuned_sizes.h"
#include "autotune/store/families/bucket_rows.h"
#include "autotune/store/families/size_ranges.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// The buckets of a range, in the order of TunedSizes::buckets.
struct TunedRange {
  std::string main_symbol;
  std::vector<SizeBucket> buckets;
  std::vector<TunedSizes::Point> points;
  bool decided = true;  // else the budget ended before anything was compared
};

/// Collective, with the same result on all ranks. Tunes a program at sizes of the ranges, which are
/// valid, and finds where the fastest variant changes. `symbolic` is canonical.
///
/// 1. Tunes it in full at one size, or at two if the range is wide.
/// 2. At every other size of a grid, times only the leaders of the neighbours that are tuned, the
///    plain schedule, and the few variants that are expected to be fastest there.
/// 3. Chooses a variant for each size of the grid, so that it changes as seldom as possible, and
///    finds by bisection where it does.
///
/// With several ranges, that is done along the symbol whose sizes differ most, for each of a few
/// sizes of the others.
absl::StatusOr<TunedRange> TuneRange(const std::shared_ptr<SessionState>& state,
                                     const Graph& symbolic, const SizeRanges& ranges);

}  // namespace coconet
