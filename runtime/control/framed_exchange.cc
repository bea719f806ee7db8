#include "runtime/control/framed_exchange.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

struct Frame {
  static constexpr int64_t kRoom = 248;
  int64_t size;  // of the message
  char text[kRoom];
};

}  // namespace

absl::StatusOr<std::vector<std::string>> FramedExchange::AllGather(absl::string_view mine) {
  Frame own{.size = static_cast<int64_t>(mine.size()), .text = {}};
  mine.copy(own.text, Frame::kRoom);
  std::vector<int64_t> sizes(ranks_, sizeof own);
  ASSIGN_OR_RETURN(std::vector<std::string> all,
                   Gather({reinterpret_cast<const char*>(&own), sizeof own}, sizes));
  for (int peer = 0; peer < ranks_; ++peer) {
    Frame theirs;
    std::memcpy(&theirs, all[peer].data(), sizeof theirs);
    sizes[peer] = theirs.size;
    all[peer].assign(theirs.text, std::min(theirs.size, Frame::kRoom));
  }
  if (*std::max_element(sizes.begin(), sizes.end()) <= Frame::kRoom) return all;
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (total > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("messages of ", total, " bytes; want less than 2 GiB together"));
  }
  return Gather(mine, sizes);
}

}  // namespace coconet
