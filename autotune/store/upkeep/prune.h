#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autotune/store/database.h"

namespace coconet {

/// What is deleted from a tuning cache (cache_file.h).
struct PruneTerms {
  /// Keys that were not used for the longest time go until the pages in use have at most so many
  /// bytes.
  std::optional<int64_t> bytes;
  /// Keys that were last used before this time go, and predictions made before it.
  std::optional<int64_t> unused_since_s;  // Unix time
  std::string keep;                       // a key that stays in any case; "": none
  bool dry_run = false;                   // only says what would go
};

/// What was, or would be, deleted.
struct Pruned {
  std::vector<std::string> keys;  // the one that was not used for the longest time first
  int64_t predictions = 0;
  int64_t bytes_before = 0, bytes_after = 0;  // of pages in use
};

/// Bytes of the pages in use, without what is left in the write-ahead log.
absl::StatusOr<int64_t> BytesInUse(Database& db);

/// Deletes records, and what is known of their variants, in one transaction. Pinned keys, and those
/// that a process is tuning, stay. The file keeps its size (Database::Shrink).
absl::StatusOr<Pruned> Prune(Database& db, const PruneTerms& terms);

}  // namespace coconet
