#include "runtime/rank_extent.h"

#include <algorithm>

namespace coconet {

int64_t RankExtent::Begin(int rank) const {
  if (per == 0) return 0;
  // No product overflows.
  return rank > (total + shift) / per ? total : std::clamp<int64_t>(rank * per - shift, 0, total);
}

int64_t RankExtent::On(int rank) const { return per == 0 ? total : Begin(rank + 1) - Begin(rank); }

}  // namespace coconet
