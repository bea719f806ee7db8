#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/store/database.h"
#include "autotune/store/record.h"

namespace coconet {

// Rows of a tuning cache (cache_file.h). Those that are read are parsed and range-checked:
// InvalidArgument says why a row is invalid; other errors are the database's.

/// The newest record whose key starts with `prefix`.
absl::StatusOr<std::optional<TuningRecord>> ReadRecord(Database& db, absl::string_view prefix);
/// The keys of all records, the newest first; of all variants.
absl::StatusOr<std::vector<std::string>> ReadKeys(Database& db);
absl::StatusOr<std::vector<std::string>> ReadKeysOfVariants(Database& db);
/// All variants of a key, the fastest first, variants without a time last.
absl::StatusOr<std::vector<VariantResult>> ReadVariants(Database& db, absl::string_view key);
/// TuningCache::Failures, without processes that have died since CountDeaths.
absl::StatusOr<std::vector<VariantResult>> ReadFailures(Database& db, absl::string_view key);
/// Counts the processes that died while they ran a variant of the key, and forgets their marks.
absl::Status CountDeaths(Database& db, absl::string_view key);
/// Marks the variant as run by this process for the first time; takes the mark away.
absl::Status MarkInFlight(Database& db, absl::string_view key, const VariantResult& variant);
absl::Status ClearInFlight(Database& db, absl::string_view key, const VariantResult& variant);
/// TuningJournal::Fail.
absl::Status WriteFailure(Database& db, absl::string_view key, const VariantResult& variant);
/// Replaces the key's record and variants in one transaction, unless the stored record is better:
/// complete, or as incomplete and faster. `variants` contain the record's best and baseline.
absl::Status WriteRecord(Database& db, const TuningRecord& record,
                         absl::Span<const VariantResult> variants);

/// Adds what was verified of a stored variant. Internal where it is not stored.
absl::Status WriteTrust(Database& db, absl::string_view key, const VariantResult& variant,
                        const Trust& trust);
/// Forgets what was verified of the key's variants.
absl::Status ForgetTrust(Database& db, absl::string_view key);
/// Marks the key's record incomplete, and its search not begun.
absl::Status MarkIncomplete(Database& db, absl::string_view key);
/// Marks the key's record as tuned with other versions than these: incomplete, and none of its
/// times final.
absl::Status MarkStale(Database& db, absl::string_view key, absl::string_view soft);
/// Forgets what leaves the key's variants out.
absl::Status ForgetFailures(Database& db, absl::string_view key);
/// Deletes the key's record and variants.
absl::Status DeleteKey(Database& db, absl::string_view key);

}  // namespace coconet
