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

/// Collective. The variants to try, the same on all ranks: those of `planned`, too, and `apart` as
/// the last one. An error if the user interrupted `deriving`.
absl::StatusOr<VariantSet> Enumerate(const Loading& loading, Preparation& deriving,
                                     std::optional<Variant> apart,
                                     absl::Span<const Schedule> planned);

/// The variant's number; -1: it is not among them.
int NumberOf(const VariantResult& variant, absl::Span<const Variant> variants);

/// Collective. Tunes the program within its budget, starting from `known`, the best of an earlier
/// tuning. Cancelled if the user interrupted before anything was measured.
absl::StatusOr<Found> Search(const Loading& loading, const std::optional<Winner>& known);

}  // namespace coconet
