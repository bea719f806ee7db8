#pragma once

#include <algorithm>
#include <cstdint>

namespace coconet {

/// The extent of a dimension per rank: `total` on every rank, or, if sliced, the rank's part, which
/// is shorter or empty on the last ranks.
struct RankExtent {
  int64_t total = 0;
  int64_t per = 0;    // sliced: rank r has what [r * per - shift, (r + 1) * per - shift) has
                      // in common with [0, total); 0: not sliced
  int64_t shift = 0;  // sliced by weights
  /// The begin of the rank's part in [0, total).
  int64_t Begin(int rank) const {
    if (per == 0) return 0;
    // No product overflows.
    return rank > (total + shift) / per ? total : std::clamp<int64_t>(rank * per - shift, 0, total);
  }
  int64_t On(int rank) const { return per == 0 ? total : Begin(rank + 1) - Begin(rank); }
  /// The largest extent over all ranks.
  int64_t Most() const { return per == 0 ? total : total < per ? total : per; }
  bool operator==(const RankExtent&) const = default;
};

}  // namespace coconet
