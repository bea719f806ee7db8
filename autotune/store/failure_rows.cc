#include "autotune/store/failure_rows.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/families/bucket_rows.h"
#include "autotune/store/process_identity.h"
#include "autotune/store/variant_rows.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// A process that is not visible from here counts as dead after this time: no variant's first run
/// takes as long.
constexpr int64_t kInFlightSeconds = 3600;
/// A variant is left out from so many runs in which it failed in a way that may pass.
constexpr int64_t kMostFailedRuns = 3;
/// For how long a variant is left out in whose first run a process died, and from how many on for
/// good. Processes die for other reasons, too.
constexpr int64_t kAfterDeathSeconds = 24 * 3600;
constexpr int64_t kMostDeaths = 2;

/// Whether that much time has passed since, or the clock was moved.
bool IsOver(int64_t since_s, int64_t seconds) { return std::abs(NowSeconds() - since_s) > seconds; }

/// A statement about the variant with this id; parameters `before` come first.
template <class... Before>
absl::Status RunOn(Database& db, absl::string_view sql, int64_t variant, const Before&... before) {
  ASSIGN_OR_RETURN(Statement statement, db.Prepare(sql));
  (statement.Bind(before), ...);
  return statement.Bind(variant).Run();
}

/// Sets verdict, reason and time of a row. A record's variants keep the verdict with which they are
/// in it.
constexpr absl::string_view kUnlessRecorded =
    ", verdict = iif(id IN (SELECT best FROM decision UNION SELECT baseline FROM decision), "
    "verdict, ?), reason = ?, updated_s = ? WHERE id = ?";

/// The reason to leave a stored variant out; "": there is none.
std::string ReasonToLeaveOut(const VariantResult& v, int64_t failed_runs, int64_t deaths,
                             int64_t updated_s) {
  if (deaths > 0) {
    const bool for_good = deaths >= kMostDeaths;
    if (!for_good && IsOver(updated_s, kAfterDeathSeconds)) return "";
    return absl::StrCat(v.reason, for_good ? "" : "; it is tried again after a day");
  }
  if (FailsForGood(v.verdict))
    return absl::StrCat(Name(v.verdict), " in an earlier run: ", v.reason);
  if (MayPass(v.verdict) && failed_runs >= kMostFailedRuns)
    return absl::StrCat(Name(v.verdict), " in ", failed_runs, " runs: ", v.reason);
  return "";
}

}  // namespace

absl::StatusOr<std::vector<VariantResult>> ReadFailures(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare(absl::StrCat("SELECT ", VariantColumns(version), ", updated_s",
                                           version < 3 ? ", 0, 0" : ", failed_runs, deaths",
                                           " FROM variant WHERE key = ? ORDER BY id")));
  find.Bind(key);
  std::vector<VariantResult> failures;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return failures;
    absl::StatusOr<VariantResult> v = VariantAt(find, 0);
    if (!v.ok()) continue;  // no variant that could be tried
    v->reason = ReasonToLeaveOut(*v, find.Int(kVariantColumns + 1), find.Int(kVariantColumns + 2),
                                 find.Int(kVariantColumns));
    if (!v->reason.empty()) failures.push_back(*std::move(v));
  }
}

absl::StatusOr<std::vector<VariantResult>> ReadFailed(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare(absl::StrCat("SELECT ", VariantColumns(kCacheSchemaVersion),
                                           ", failed_runs + deaths FROM variant WHERE key = ?")));
  find.Bind(key);
  std::vector<VariantResult> failed;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return failed;
    absl::StatusOr<VariantResult> v = VariantAt(find, 0);
    if (v.ok() && (find.Int(kVariantColumns) > 0 || FailsForGood(v->verdict)))
      failed.push_back(*std::move(v));
  }
}

absl::Status CountDeaths(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  ASSIGN_OR_RETURN(
      Statement find,
      db.Prepare("SELECT f.variant, f.process, f.since_s FROM in_flight f JOIN variant "
                 "v ON v.id = f.variant WHERE v.key = ?"));
  find.Bind(key);
  std::vector<std::pair<int64_t, std::string>> dead;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) break;
    const Life life = LifeOf(find.Text(1));
    if (life == Life::kDead || (life == Life::kUnknown && IsOver(find.Int(2), kInFlightSeconds)))
      dead.emplace_back(find.Int(0), find.Text(1));
  }
  for (const auto& [variant, process] : dead) {
    ASSIGN_OR_RETURN(Statement forget,
                     db.Prepare("DELETE FROM in_flight WHERE variant = ? AND process = ?"));
    RETURN_IF_ERROR(forget.Bind(variant).Bind(process).Run());
    RETURN_IF_ERROR(RunOn(db,
                          absl::StrCat("UPDATE variant SET deaths = deaths + 1", kUnlessRecorded),
                          variant, Name(Verdict::kQuarantined),
                          "an earlier process died while it ran for the first time", NowSeconds()));
  }
  return transaction.Commit();
}

absl::Status MarkInFlight(Database& db, absl::string_view key, const VariantResult& variant) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  ASSIGN_OR_RETURN(const int64_t id, RowOf(db, key, variant));
  RETURN_IF_ERROR(RunOn(db,
                        "INSERT OR REPLACE INTO in_flight(process, since_s, variant) "
                        "VALUES (?, ?, ?)",
                        id, OwnProcess(), NowSeconds()));
  return transaction.Commit();
}

absl::Status ClearInFlight(Database& db, absl::string_view key, const VariantResult& variant) {
  ASSIGN_OR_RETURN(Statement clear,
                   OfVariant(db,
                             absl::StrCat("DELETE FROM in_flight WHERE process = ? AND variant IN "
                                          "(SELECT id FROM variant",
                                          kOfVariant, ")"),
                             key, variant, OwnProcess()));
  return clear.Run();
}

absl::Status WriteFailure(Database& db, absl::string_view key, const VariantResult& variant) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  ASSIGN_OR_RETURN(const int64_t id, RowOf(db, key, variant));
  if (FailsForGood(variant.verdict)) {
    RETURN_IF_ERROR(RunOn(db, "DELETE FROM decision WHERE ?1 IN (best, baseline)", id));
    RETURN_IF_ERROR(RunOn(db, "DELETE FROM trust WHERE variant = ?", id));
    RETURN_IF_ERROR(DoubtBuckets(db, key, variant.trace, Text(variant.config)));
  }
  RETURN_IF_ERROR(
      RunOn(db, absl::StrCat("UPDATE variant SET failed_runs = failed_runs + 1", kUnlessRecorded),
            id, Name(variant.verdict), variant.reason, NowSeconds()));
  return transaction.Commit();
}

absl::Status ForgetFailures(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  for (const char* sql :
       {"DELETE FROM in_flight WHERE variant IN (SELECT id FROM variant WHERE key = ?)",
        "UPDATE variant SET failed_runs = 0, deaths = 0, reason = '', verdict = 'not measured' "
        "WHERE key = ? AND (failed_runs > 0 OR deaths > 0 OR verdict = 'quarantined') AND id NOT "
        "IN "
        "(SELECT best FROM decision UNION SELECT baseline FROM decision)",
        "UPDATE variant SET failed_runs = 0, deaths = 0 WHERE key = ?"}) {
    ASSIGN_OR_RETURN(Statement statement, db.Prepare(sql));
    RETURN_IF_ERROR(statement.Bind(key).Run());
  }
  return transaction.Commit();
}

}  // namespace coconet
