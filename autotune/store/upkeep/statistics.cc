#include "autotune/store/upkeep/statistics.h"

#include "autotune/store/record.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// The variants with a verdict for good.
absl::StatusOr<int64_t> CountFailed(Database& db) {
  int64_t failed = 0;
  ASSIGN_OR_RETURN(Statement count,
                   db.Prepare("SELECT verdict, count(*) FROM variant GROUP BY verdict"));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, count.Step());
    if (!row) return failed;
    const std::optional<Verdict> verdict = ParseVerdict(count.Text(0));
    if (verdict.has_value() && (FailsForGood(*verdict) || MayPass(*verdict)))
      failed += count.Int(1);
  }
}

}  // namespace

absl::StatusOr<CacheStatistics> ReadStatistics(Database& db) {
  ASSIGN_OR_RETURN(Transaction reading, Transaction::BeginRead(db));
  CacheStatistics s;
  ASSIGN_OR_RETURN(s.schema, db.QueryInt("PRAGMA user_version"));
  // Each number with the version of the schema that brought what it counts.
  const struct {
    int64_t* number;
    int64_t since;
    const char* sql;
  } kNumbers[] = {
      {&s.records, 1, "SELECT count(*) FROM decision"},
      {&s.complete, 1, "SELECT count(*) FROM decision WHERE complete"},
      {&s.variants, 1, "SELECT count(*) FROM variant"},
      {&s.oldest_s, 1, "SELECT min(created_s) FROM decision"},
      {&s.newest_s, 1, "SELECT max(created_s) FROM decision"},
      {&s.trusts, 2, "SELECT count(*) FROM trust"},
      {&s.calibrations, 5, "SELECT count(*) FROM calibration"},
      {&s.predictions, 5, "SELECT count(*) FROM prediction"},
      {&s.imported, 7, "SELECT count(*) FROM decision WHERE imported"},
      {&s.pinned, 7, "SELECT count(*) FROM pin"},
      {&s.families, 9, "SELECT count(*) FROM family"},
      {&s.buckets, 9, "SELECT count(*) FROM bucket"},
  };
  for (const auto& [number, since, sql] : kNumbers) {
    if (s.schema < since) continue;
    ASSIGN_OR_RETURN(*number, db.QueryInt(sql));
  }
  ASSIGN_OR_RETURN(s.failures, CountFailed(db));
  ASSIGN_OR_RETURN(const int64_t pages, db.QueryInt("PRAGMA page_count"));
  ASSIGN_OR_RETURN(const int64_t unused, db.QueryInt("PRAGMA freelist_count"));
  ASSIGN_OR_RETURN(const int64_t bytes, db.QueryInt("PRAGMA page_size"));
  s.bytes = pages * bytes;
  s.unused_bytes = unused * bytes;
  return s;
}

}  // namespace coconet
