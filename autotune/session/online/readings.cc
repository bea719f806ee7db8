#include "autotune/session/online/readings.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"

namespace coconet {

absl::StatusOr<AgreedReadings> AgreeOn(Exchange& exchange, const Readings& mine, bool one_machine) {
  const size_t count = mine.calls.size();
  Packer packer;
  packer.Real(mine.exchange_us).Real(mine.work_us).Int(static_cast<int64_t>(count));
  for (const Readings::Span& span : mine.calls) packer.Real(span.begin_us).Real(span.end_us);
  ASSIGN_OR_RETURN(const std::vector<std::string> all, exchange.AllGather(packer.bytes()));
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<double> begin(count, -kNone), end(count, -kNone), longest(count);
  // The rank that came last did not wait for others; all wait for the one that works longest.
  double exchange_us = kNone, work_us = 0;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    Unpacker in(all[rank]);
    exchange_us = std::min(exchange_us, in.Real());
    work_us = std::max(work_us, in.Real());
    if (const int64_t theirs = in.Int(); theirs != static_cast<int64_t>(count)) {
      return absl::InternalError(absl::StrCat("explored steps: want readings of ", count,
                                              " calls from each rank, have ", theirs, " from rank ",
                                              rank));
    }
    for (size_t i = 0; i < count; ++i) {
      const double from = in.Real(), to = in.Real();
      begin[i] = std::max(begin[i], from);
      end[i] = std::max(end[i], to);
      longest[i] = std::max(longest[i], to - from);
    }
    RETURN_IF_ERROR(in.Done());
  }
  AgreedReadings agreed{std::move(longest), exchange_us + work_us};
  for (size_t i = 0; one_machine && i < count; ++i) {
    // Ranks that come early wait in a step for those that come late, which is not its time.
    const double since_last = end[i] - begin[i];
    if (since_last > 0) agreed.call_us[i] = std::min(agreed.call_us[i], since_last);
  }
  return agreed;
}

}  // namespace coconet
