#ifndef COCONET_AUTOTUNE_STORE_CACHE_SCHEMA_H_
#define COCONET_AUTOTUNE_STORE_CACHE_SCHEMA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "autotune/store/database.h"

namespace coconet {

inline constexpr int64_t kCacheApplicationId = 0x436F636F;  // "Coco"
inline constexpr int64_t kCacheSchemaVersion = 1;

/// Checks a database without writing to it: OK when it is empty, or a tuning cache of at most this
/// version. FailedPrecondition for another application's, for a newer version, and for one with
/// views or triggers, which no tuning cache has; DataLoss for a corrupt one.
absl::Status CheckSchema(Database& db);

/// Migrates an empty database or older tuning cache to kCacheSchemaVersion, in one transaction.
/// Several processes may do so at once.
absl::Status Migrate(Database& db);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_STORE_CACHE_SCHEMA_H_
