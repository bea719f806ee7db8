#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "autotune/search/variant_runner.h"
#include "autotune/session/load/loading.h"

namespace coconet {

/// Collective. Whether this code was verified on this machine; not with COCONET_VERIFY.
absl::StatusOr<bool> IsTrusted(const Loading& loading, const Winner& known);

/// Collective. Runs the winner on fresh data, against the interpreter and, if its results are long,
/// the plain schedule, and loads it if it passes. A failure that may pass is tried again once.
absl::StatusOr<std::optional<Failure>> VerifyAndLoad(const Loading& loading, Winner& winner);

/// Collective. VerifyAndLoad for a stored winner. Why it may not be dispatched here; "" if it gives
/// the right answers; the cache is told. A failure that may pass leaves the record as it is.
absl::StatusOr<std::string> WhyUnfit(const Loading& loading, Winner& known);

}  // namespace coconet
