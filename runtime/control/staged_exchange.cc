#include "runtime/control/staged_exchange.h"

#include <algorithm>
#include <cstring>

#include "coconet/base/status.h"

namespace coconet {

// A window holds the size of the message and its next bytes; ranks whose messages are shorter than
// the longest show windows without any.
absl::StatusOr<std::vector<std::string>> StagedExchange::AllGather(absl::string_view mine) {
  const size_t room = staging_.window() - sizeof(size_t);
  RETURN_IF_ERROR(CheckAllHere(staging_.board(), rank_, "exchange"));
  std::vector<std::string> all(size_);
  size_t longest = 0, done = 0;
  do {
    staging_.Next();
    const absl::string_view next = mine.substr(std::min(done, mine.size()), room);
    const size_t total = mine.size();
    std::memcpy(staging_.Shown(rank_), &total, sizeof total);
    std::memcpy(staging_.Shown(rank_) + sizeof total, next.data(), next.size());
    RETURN_IF_ERROR(staging_.AwaitShown("exchange", /*is_behind_counts=*/true));
    for (int peer = 0; peer < size_; ++peer) {
      size_t size = 0;
      std::memcpy(&size, staging_.Shown(peer), sizeof size);
      longest = std::max(longest, size);
      const size_t here = std::min(size - std::min(done, size), room);
      all[peer].append(staging_.Shown(peer) + sizeof size, here);
    }
    done += room;
  } while (done < longest);
  return all;
}

}  // namespace coconet
