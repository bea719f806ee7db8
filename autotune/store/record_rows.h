#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/store/database.h"
#include "autotune/store/record.h"

namespace coconet {

// Records in a tuning cache (cache_file.h), and the verifications of their variants. Errors as in
// variant_rows.h.

/// The newest record whose key starts with `prefix`, with its fastest variant as best, whatever is
/// pinned (pin_rows.h).
absl::StatusOr<std::optional<TuningRecord>> ReadRecord(Database& db, absl::string_view prefix);
/// A record that is read, or why its row is invalid.
struct RecordRow {
  std::string key;
  absl::StatusOr<TuningRecord> record;
};
/// Passes all records, the newest first, to `take`, one after the other.
absl::Status ReadRecords(Database& db, absl::FunctionRef<void(RecordRow)> take);
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

/// The same as a part of the caller's transaction, and whatever record is stored.
absl::Status ReplaceRecord(Database& db, const TuningRecord& record,
                           absl::Span<const VariantResult> variants);

/// What was verified of a variant, the newest first; nothing if it is not stored.
absl::StatusOr<std::vector<Trust>> ReadTrust(Database& db, absl::string_view key,
                                             const VariantResult& variant);
/// Adds a verification of a variant. One that is not stored, since its record is of another layer,
/// is stored without its time.
absl::Status WriteTrust(Database& db, absl::string_view key, const VariantResult& variant,
                        const Trust& trust);
/// Forgets the verifications of the key's variants.
absl::Status ForgetTrust(Database& db, absl::string_view key);
/// Marks the key's record incomplete, and its search not begun.
absl::Status MarkIncomplete(Database& db, absl::string_view key);
/// Marks the key's record as tuned with other versions than these: incomplete, and none of its
/// times final.
absl::Status MarkStale(Database& db, absl::string_view key, absl::string_view soft);
/// Deletes the key's record, variants and pin.
absl::Status DeleteKey(Database& db, absl::string_view key);
/// The same of several keys, as a part of the caller's transaction; returns how often `go_on` let
/// it, which is asked before each.
absl::StatusOr<size_t> DeleteKeys(Database& db, absl::Span<const std::string> keys,
                                  absl::FunctionRef<absl::StatusOr<bool>()> go_on);

}  // namespace coconet
