#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/store/database.h"
#include "autotune/store/history/speed_up.h"

namespace coconet {

// What runs have measured, in a tuning cache (cache_file.h): a row per run and key.

/// The most rows of a key; older ones go.
inline constexpr int64_t kMostOfHistory = 20;

/// Adds a row. InvalidArgument if it makes no sense.
absl::Status WriteHistory(Database& db, absl::string_view key, const Measured& measured);
/// The rows of a key, the newest first. A file of an earlier version has none.
absl::StatusOr<std::vector<Measured>> ReadHistory(Database& db, absl::string_view key);

}  // namespace coconet
