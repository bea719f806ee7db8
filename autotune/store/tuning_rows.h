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

/// The rows of a tuning cache (cache_schema.h). Rows are data: what is read has been parsed and
/// range-checked, and InvalidArgument says why a row makes no sense; other errors are the
/// database's.

/// A key's text in its two halves, each kept once: the environment, and the program ("program: ..."
/// lines, last).
struct KeyHalves {
  std::string environment, program;
};
KeyHalves SplitKeyText(absl::string_view key_text);

/// The newest record whose key starts with `prefix`.
absl::StatusOr<std::optional<TuningRecord>> ReadRecord(Database& db, absl::string_view prefix);
/// All keys, the newest record first.
absl::StatusOr<std::vector<std::string>> ReadKeys(Database& db);
absl::StatusOr<std::vector<VariantResult>> ReadVariants(Database& db, absl::string_view key);

/// Failed variants of a key, and as kQuarantined those that were in flight in a process that is no
/// more.
absl::StatusOr<std::vector<VariantResult>> ReadFailures(Database& db, absl::string_view key);

/// Notes that this process is about to run the variant for the first time, ...
absl::Status MarkInFlight(Database& db, absl::string_view key, const VariantResult& variant);
/// ... and what came of it.
absl::Status ClearInFlight(Database& db, absl::string_view key, const VariantResult& variant);

/// Replaces what is known of the key in one transaction, unless what is there is better: complete,
/// or as incomplete and faster. `best` and `baseline` of the record must be among `variants`.
absl::Status WriteRecord(Database& db, const TuningRecord& record,
                         absl::Span<const VariantResult> variants);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_STORE_TUNING_ROWS_H_
