#include "autotune/store/cache_schema.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// kMigrations[v] leads from version v to v + 1. Never edited once released: later versions append.
///
/// env, program   the two halves of a key's text, each kept once
/// decision       one tuned program: what a hit replays
/// variant        the result of each variant of a key. `in_flight` names the process that runs it
/// for
///                the first time: where that process has died, the variant may have killed it
constexpr const char* kMigrations[] = {
    R"sql(
CREATE TABLE env(
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE program(
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE variant(
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL CHECK(length(key) = 64),
  trace TEXT NOT NULL,
  config TEXT NOT NULL,
  schedule TEXT NOT NULL,
  protocol TEXT NOT NULL,
  verdict TEXT NOT NULL,
  reason TEXT NOT NULL,
  median_us REAL NOT NULL CHECK(median_us >= 0),
  low_us REAL NOT NULL CHECK(low_us >= 0),
  high_us REAL NOT NULL CHECK(high_us >= 0),
  samples INTEGER NOT NULL CHECK(samples >= 0),
  bytes INTEGER NOT NULL CHECK(bytes >= 0),
  in_flight TEXT,
  updated_s INTEGER NOT NULL,
  UNIQUE(key, trace, config)
) STRICT;
CREATE TABLE decision(
  key TEXT PRIMARY KEY CHECK(length(key) = 64),
  env INTEGER NOT NULL REFERENCES env(id),
  program INTEGER NOT NULL REFERENCES program(id),
  best INTEGER NOT NULL REFERENCES variant(id),
  baseline INTEGER NOT NULL REFERENCES variant(id),
  runner_up TEXT NOT NULL,
  necessary_bytes INTEGER NOT NULL CHECK(necessary_bytes >= 0),
  variants INTEGER NOT NULL CHECK(variants > 0),
  complete INTEGER NOT NULL CHECK(complete IN (0, 1)),
  origin TEXT NOT NULL,
  created_s INTEGER NOT NULL
) STRICT;
)sql",
};
static_assert(std::size(kMigrations) == kCacheSchemaVersion);

}  // namespace

absl::Status CheckSchema(Database& db) {
  // One transaction, since another process may be creating the file.
  ASSIGN_OR_RETURN(Transaction reading, Transaction::BeginRead(db));
  ASSIGN_OR_RETURN(const int64_t application, db.QueryInt("PRAGMA application_id"));
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  ASSIGN_OR_RETURN(const int64_t objects, db.QueryInt("SELECT count(*) FROM sqlite_schema"));
  if (application != kCacheApplicationId && (application != 0 || version != 0 || objects != 0)) {
    return absl::FailedPreconditionError("is a database of another application; give another file");
  }
  if (version > kCacheSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("was written by a newer version (schema ", version, ", this one knows ",
                     kCacheSchemaVersion, "); upgrade, or give another file"));
  }
  ASSIGN_OR_RETURN(
      const int64_t foreign,
      db.QueryInt("SELECT count(*) FROM sqlite_schema WHERE type IN ('view', 'trigger')"));
  if (foreign != 0)
    return absl::FailedPreconditionError(
        "holds views or triggers that we did not make; give another file");
  ASSIGN_OR_RETURN(const std::string check, db.QueryText("PRAGMA quick_check(1)"));
  if (check != "ok") return absl::DataLossError(absl::StrCat("quick_check: ", check));
  return reading.Commit();
}

absl::Status Migrate(Database& db) {
  ASSIGN_OR_RETURN(int64_t version, db.QueryInt("PRAGMA user_version"));
  if (version == kCacheSchemaVersion) return absl::OkStatus();
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  ASSIGN_OR_RETURN(version,
                   db.QueryInt("PRAGMA user_version"));  // another process may have migrated it
  for (int64_t v = version; v < kCacheSchemaVersion; ++v)
    RETURN_IF_ERROR(db.Execute(kMigrations[v]));
  RETURN_IF_ERROR(db.Execute(absl::StrCat("PRAGMA application_id=", kCacheApplicationId,
                                          "; PRAGMA user_version=", kCacheSchemaVersion)
                                 .c_str()));
  return transaction.Commit();
}

}  // namespace coconet
