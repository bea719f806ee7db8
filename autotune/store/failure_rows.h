#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/store/database.h"
#include "autotune/store/record.h"

namespace coconet {

// The reasons why variants are left out, in a tuning cache (cache_file.h): failures, and marks of
// variants that a process runs for the first time.

/// TuningCache::Failures, without processes that have died since CountDeaths.
absl::StatusOr<std::vector<VariantResult>> ReadFailures(Database& db, absl::string_view key);
/// The variants that have failed under the key in any way, also those that are tried again.
absl::StatusOr<std::vector<VariantResult>> ReadFailed(Database& db, absl::string_view key);
/// Counts the processes that died while they ran a variant of the key, and forgets their marks.
absl::Status CountDeaths(Database& db, absl::string_view key);
/// Marks the variant as run by this process for the first time; takes the mark away.
absl::Status MarkInFlight(Database& db, absl::string_view key, const VariantResult& variant);
absl::Status ClearInFlight(Database& db, absl::string_view key, const VariantResult& variant);
/// TuningJournal::Fail.
absl::Status WriteFailure(Database& db, absl::string_view key, const VariantResult& variant);
/// Forgets the key's reasons to leave variants out.
absl::Status ForgetFailures(Database& db, absl::string_view key);

}  // namespace coconet
