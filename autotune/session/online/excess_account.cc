#include "autotune/session/online/excess_account.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Sums of parts of the allowance are rounded.
constexpr double kRounding = 1e-9;

}  // namespace

int64_t ExcessAccount::Place(int64_t from, absl::Span<const double> most) const {
  const double sum = std::accumulate(most.begin(), most.end(), 0.0);
  const double allowance = allowance_ + kRounding;
  if (!(sum <= allowance) || std::ssize(most) > window_) return kNever;
  // No window that has one of them reaches back to call begin - window_.
  int64_t begin = from;
  double past = 0;
  for (size_t e = entries_.size(); e-- > 0 && entries_[e].call > begin - window_;) {
    past += entries_[e].excess;
    // Later by so much, the entry is outside of the window.
    if (past + sum > allowance) begin = std::max(begin, entries_[e].call + window_);
  }
  return begin;
}

void ExcessAccount::Charge(int64_t call, double excess) {
  const auto at = absl::c_find_if(entries_, [&](const Entry& entry) { return entry.call == call; });
  CC_CHECK(at != entries_.end());
  at->excess = excess;
}

void ExcessAccount::Forget(int64_t call) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.call <= call - window_; });
}

void ExcessAccount::Scale(double factor) {
  for (Entry& entry : entries_) entry.excess *= factor;
}

}  // namespace coconet
