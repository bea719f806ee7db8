#ifndef COCONET_AUTOTUNE_STORE_CACHE_SCHEMA_H_
#define COCONET_AUTOTUNE_STORE_CACHE_SCHEMA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "autotune/store/database.h"

namespace coconet {

inline constexpr int64_t kCacheApplicationId = 0x436F636F;  // "Coco"
inline constexpr int64_t kCacheSchemaVersion = 1;

/// What the database is, before anything is written to it: OK for an empty one and for ours of a
/// version up to this one; FailedPrecondition for another application's, a newer one's, and one
/// with views or triggers (we make none); DataLoss when its pages do not hold together.
absl::Status CheckSchema(Database& db);

/// Brings an empty or older database of ours to kCacheSchemaVersion, in one transaction. Several
/// processes may do so at once.
absl::Status Migrate(Database& db);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_STORE_CACHE_SCHEMA_H_
