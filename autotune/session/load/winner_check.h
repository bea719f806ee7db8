#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "autotune/session/load/loading.h"

namespace coconet {

/// Collective. Whether this code was verified on this machine; not with COCONET_VERIFY.
absl::StatusOr<bool> IsTrusted(const Loading& loading, const Winner& known);

/// Collective. Runs a stored winner on fresh data, and loads it. Why it may not be dispatched here,
/// "" where it gives the right answers; the cache is told. A failure that may pass is tried again
/// once, and leaves the record as it is.
absl::StatusOr<std::string> WhyUnfit(const Loading& loading, Winner& known);

}  // namespace coconet
