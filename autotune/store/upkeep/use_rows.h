#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/store/database.h"
#include "autotune/store/record.h"

namespace coconet {

// What users and jobs ask of a key in a tuning cache (cache_file.h): when it was used, and which
// variant is pinned. Files of earlier versions, which are read-only, have neither.

/// When a job last took the key's record; 0 if it is not known.
absl::StatusOr<int64_t> ReadLastUse(Database& db, absl::string_view key);
/// Sets it to now.
absl::Status WriteLastUse(Database& db, absl::string_view key);
/// The same, unless it was within the last day: a hit seldom writes.
absl::Status NoteUse(Database& db, absl::string_view key);

/// Pins a stored variant of the key. FailedPrecondition if it was never timed, or failed.
absl::Status WritePin(Database& db, absl::string_view key, const VariantResult& variant);
/// Returns whether there was a pin.
absl::StatusOr<bool> DeletePin(Database& db, absl::string_view key);
/// The key's pinned variant; none if nothing is pinned. NotFound if it is no longer stored,
/// FailedPrecondition if it has failed since, InvalidArgument if its row makes no sense.
absl::StatusOr<std::optional<VariantResult>> ReadPin(Database& db, absl::string_view key);

}  // namespace coconet
