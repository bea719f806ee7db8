#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "autotune/store/database.h"

namespace coconet {

/// What a tuning cache (cache_file.h) holds, in numbers.
struct CacheStatistics {
  int64_t schema = 0;  // version
  int64_t records = 0, complete = 0, imported = 0, pinned = 0;
  int64_t variants = 0;
  int64_t failures = 0;  // variants that are not tried again, or failed in some runs
  int64_t trusts = 0;    // verifications
  int64_t calibrations = 0, predictions = 0;
  int64_t families = 0, buckets = 0;    // of sizes
  int64_t bytes = 0, unused_bytes = 0;  // of the file's pages, and those without content
  int64_t oldest_s = 0, newest_s = 0;   // Unix time of records' making; 0: there are none
};

absl::StatusOr<CacheStatistics> ReadStatistics(Database& db);

}  // namespace coconet
