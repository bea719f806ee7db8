#ifndef COCONET_AUTOTUNE_STORE_TUNING_ROWS_H_
#define COCONET_AUTOTUNE_STORE_TUNING_ROWS_H_

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

/// Reads and writes rows of a tuning cache (cache_schema.h). Rows that are read are parsed and
/// range-checked: InvalidArgument says why a row is invalid; other errors are the database's.

/// The halves of a key's text, each stored once: the environment, and the program (the "program:
/// ..." lines at the end).
struct KeyHalves {
  std::string environment, program;
};
KeyHalves SplitKeyText(absl::string_view key_text);

/// The newest record whose key starts with `prefix`.
absl::StatusOr<std::optional<TuningRecord>> ReadRecord(Database& db, absl::string_view prefix);
/// All keys, the newest record first.
absl::StatusOr<std::vector<std::string>> ReadKeys(Database& db);
absl::StatusOr<std::vector<VariantResult>> ReadVariants(Database& db, absl::string_view key);

/// Failed variants of a key, and, as kQuarantined, variants that were in flight in a process that
/// died.
absl::StatusOr<std::vector<VariantResult>> ReadFailures(Database& db, absl::string_view key);

/// Records that this process is about to run the variant for the first time.
absl::Status MarkInFlight(Database& db, absl::string_view key, const VariantResult& variant);
/// Records the result of that run.
absl::Status ClearInFlight(Database& db, absl::string_view key, const VariantResult& variant);

/// Replaces the key's record and variants in one transaction, unless the stored record is better:
/// complete, or as incomplete and faster. `variants` contain the record's best and baseline.
absl::Status WriteRecord(Database& db, const TuningRecord& record,
                         absl::Span<const VariantResult> variants);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_STORE_TUNING_ROWS_H_
