#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/session/load/loading.h"
#include "autotune/store/record.h"

namespace coconet {

/// The result of tuning.
struct Found {
  Winner winner;
  std::vector<VariantResult> variants;
  int incumbent = -1;  // the number of the variant that was known before
};

/// Collective. Tunes the program within its budget, starting from `known`, the best of an earlier
/// tuning. Cancelled if the user interrupted before anything was measured.
absl::StatusOr<Found> Search(const Loading& loading, const std::optional<Winner>& known);

}  // namespace coconet
