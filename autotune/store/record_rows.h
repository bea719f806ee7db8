#pragma once

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

// Records in a tuning cache (cache_file.h), and the verifications of their variants. Errors as in
// variant_rows.h.

/// The newest record whose key starts with `prefix`.
absl::StatusOr<std::optional<TuningRecord>> ReadRecord(Database& db, absl::string_view prefix);
/// The keys of all records, the newest first.
absl::StatusOr<std::vector<std::string>> ReadKeys(Database& db);
/// The key that a record is stored under.
struct KeyOfRecord {
  std::string key, key_text;  // as in TuningRecord
};
/// The keys of all records with their texts, the newest first.
absl::StatusOr<std::vector<KeyOfRecord>> ReadKeyTexts(Database& db);
/// Replaces the key's record and variants in one transaction, unless the stored record is better:
/// complete, or as incomplete and faster. `variants` contain the record's best and baseline.
absl::Status WriteRecord(Database& db, const TuningRecord& record,
                         absl::Span<const VariantResult> variants);

/// Adds a verification of a stored variant. Internal if it is not stored.
absl::Status WriteTrust(Database& db, absl::string_view key, const VariantResult& variant,
                        const Trust& trust);
/// Forgets the verifications of the key's variants.
absl::Status ForgetTrust(Database& db, absl::string_view key);
/// Marks the key's record incomplete, and its search not begun.
absl::Status MarkIncomplete(Database& db, absl::string_view key);
/// Marks the key's record as tuned with other versions than these: incomplete, and none of its
/// times final.
absl::Status MarkStale(Database& db, absl::string_view key, absl::string_view soft);
/// Deletes the key's record and variants.
absl::Status DeleteKey(Database& db, absl::string_view key);

}  // namespace coconet
