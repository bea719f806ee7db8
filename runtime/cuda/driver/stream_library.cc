#include "runtime/cuda/driver/stream_library.h"

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {

absl::StatusOr<std::string> FirstNote(Exchange& exchange, absl::string_view mine) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all, exchange.AllGather(mine));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) return absl::StrCat("rank ", rank, ": ", all[rank]);
  }
  return std::string();
}

}  // namespace coconet
