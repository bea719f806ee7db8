#include "autotune/session/load/preparation.h"

#include <vector>

#include "absl/status/statusor.h"
#include "autotune/search/time_budget.h"

namespace coconet {

bool Preparation::GoOn() {
  if (ended_) return false;
  const bool interrupted = options_.interrupted && options_.interrupted();
  const absl::StatusOr<std::vector<int>> said =
      FromRank0(exchange_, {interrupted, options_.seconds() > options_.end_s});
  status_ = !said.ok() ? said.status() : (*said)[0] != 0 ? options_.when_interrupted : status_;
  ended_ = !status_.ok() || (*said)[1] != 0;
  return !ended_;
}

}  // namespace coconet
