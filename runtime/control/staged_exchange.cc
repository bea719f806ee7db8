#include "runtime/control/staged_exchange.h"

#include <algorithm>

#include "coconet/base/status.h"

namespace coconet {

absl::StatusOr<std::vector<std::string>> StagedExchange::Gather(absl::string_view mine,
                                                                const std::vector<int64_t>& sizes) {
  RETURN_IF_ERROR(CheckAllHere(staging_.board(), rank_, "exchange"));
  const int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::string> all(ranks());
  for (int64_t done = 0; done < longest; done += staging_.window()) {
    staging_.Next();
    const absl::string_view next =
        mine.substr(std::min<size_t>(done, mine.size()), staging_.window());
    next.copy(staging_.Shown(rank_), next.size());
    RETURN_IF_ERROR(staging_.AwaitShown("exchange", /*is_behind_counts=*/true));
    for (int peer = 0; peer < ranks(); ++peer)
      all[peer].append(staging_.Shown(peer),
                       std::clamp<int64_t>(sizes[peer] - done, 0, staging_.window()));
  }
  return all;
}

}  // namespace coconet
