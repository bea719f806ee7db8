#include "autotune/store/cache_rows.h"

#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/store/process_identity.h"
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

constexpr const char* kColumns[] = {"trace",   "config",  "schedule",  "protocol",
                                    "verdict", "reason",  "median_us", "low_us",
                                    "high_us", "samples", "bytes",     "load"};
constexpr int kColumnCount = std::size(kColumns);
constexpr absl::string_view kOfVariant = " WHERE key = ? AND trace = ? AND config = ?";

/// "b.trace, b.config, ..." for the table "b.".
std::string Columns(absl::string_view table = "") {
  return absl::StrJoin(kColumns, ", ", [&](std::string* out, const char* column) {
    absl::StrAppend(out, table, column);
  });
}

/// The same, where the file, which is read-only, may be of an earlier version.
std::string ColumnsToRead(int64_t version, absl::string_view table = "") {
  if (version >= 4) return Columns(table);
  const std::string columns = Columns(table);
  return absl::StrCat(absl::StripSuffix(columns, absl::StrCat(table, "load")), "0");
}

int64_t Now() { return absl::ToUnixSeconds(absl::Now()); }

/// Whether that much time has passed since, or the clock was moved.
bool IsOver(int64_t since_s, int64_t seconds) { return std::abs(Now() - since_s) > seconds; }

/// The variant in columns `first`... of the current row.
absl::StatusOr<VariantResult> VariantAt(const Statement& row, int first) {
  const std::optional<Verdict> verdict = ParseVerdict(row.Text(first + 4));
  if (!verdict.has_value())
    return absl::InvalidArgumentError(absl::StrCat("no verdict '", row.Text(first + 4), "'"));
  ASSIGN_OR_RETURN(const Config config, ParseConfig(row.Text(first + 1)));
  return VariantResult{.trace = row.Text(first),
                       .schedule = row.Text(first + 2),
                       .protocol = row.Text(first + 3),
                       .config = config,
                       .verdict = *verdict,
                       .reason = row.Text(first + 5),
                       .timing = {row.Real(first + 6), row.Real(first + 7), row.Real(first + 8),
                                  static_cast<int>(row.Int(first + 9))},
                       .bytes = row.Int(first + 10),
                       .load = row.Real(first + 11)};
}

/// The state of the search in columns `first`... of the current row.
SearchState SearchAt(const Statement& row, int first) {
  return {.tried = static_cast<int>(row.Int(first)),
          .drawn = static_cast<int>(row.Int(first + 1)),
          .since_gain = static_cast<int>(row.Int(first + 2)),
          .runs = static_cast<int>(row.Int(first + 3)),
          .spent_s = row.Real(first + 4),
          .load = row.Real(first + 5)};
}

/// A statement about one variant: `sql`, then parameters `before`, then those of kOfVariant.
template <class... Before>
absl::StatusOr<Statement> OfVariant(Database& db, absl::string_view sql, absl::string_view key,
                                    const VariantResult& v, const Before&... before) {
  ASSIGN_OR_RETURN(Statement statement, db.Prepare(sql));
  (statement.Bind(before), ...);
  statement.Bind(key).Bind(v.trace).Bind(Text(v.config));
  return statement;
}

/// A statement that inserts a variant; its parameters go on behind kColumns.
absl::StatusOr<Statement> InsertOf(Database& db, absl::string_view sql, absl::string_view key,
                                   const VariantResult& v) {
  ASSIGN_OR_RETURN(Statement insert, OfVariant(db, sql, key, v));
  const Timing& t = v.timing;
  insert.Bind(v.schedule).Bind(v.protocol).Bind(Name(v.verdict)).Bind(v.reason);
  insert.Bind(t.median_us)
      .Bind(t.low_us)
      .Bind(t.high_us)
      .Bind(t.samples)
      .Bind(v.bytes)
      .Bind(v.load);
  return insert;
}

/// The number in the first row; an error where there is no row.
absl::StatusOr<int64_t> IdOf(Statement find, absl::string_view what) {
  ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) return absl::InternalError(absl::StrCat("not stored: ", what));
  return find.Int(0);
}

/// The id of `text` in a table of texts, which is inserted where it is new. `table` is a literal.
absl::StatusOr<int64_t> Intern(Database& db, absl::string_view table, absl::string_view text) {
  ASSIGN_OR_RETURN(Statement insert,
                   db.Prepare(absl::StrCat("INSERT OR IGNORE INTO ", table, "(text) VALUES (?)")));
  RETURN_IF_ERROR(insert.Bind(text).Run());
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare(absl::StrCat("SELECT id FROM ", table, " WHERE text = ?")));
  find.Bind(text);
  return IdOf(std::move(find), table);
}

absl::StatusOr<int64_t> VariantId(Database& db, absl::string_view key, const VariantResult& v) {
  ASSIGN_OR_RETURN(Statement find,
                   OfVariant(db, absl::StrCat("SELECT id FROM variant", kOfVariant), key, v));
  return IdOf(std::move(find), Words(v));
}

/// Whether the stored record of the same key is kept.
absl::StatusOr<bool> StoredIsBetter(Database& db, const TuningRecord& record,
                                    absl::Span<const VariantResult> variants) {
  if (record.complete) return false;
  ASSIGN_OR_RETURN(
      Statement find,
      db.Prepare("SELECT d.complete, v.median_us, v.trace, v.config FROM decision d JOIN variant v "
                 "ON v.id = d.best WHERE d.key = ?"));
  ASSIGN_OR_RETURN(const bool found, find.Bind(record.key).Step());
  if (!found) return false;
  if (find.Int(0) != 0) return true;
  for (const VariantResult& v : variants) {
    // Times of one run are comparable.
    if (v.timing.samples > 0 && v.trace == find.Text(2) && Text(v.config) == find.Text(3))
      return false;
  }
  return find.Real(1) < record.best.timing.median_us;
}

/// Where the program begins in a key's text: the "program: ..." lines at the end.
size_t ProgramIn(absl::string_view key_text) {
  if (absl::StartsWith(key_text, "program: ")) return 0;
  const size_t line_end = key_text.find("\nprogram: ");
  return line_end == absl::string_view::npos ? key_text.size() : line_end + 1;
}

/// What was verified of the variant with this id, the newest first. A file of version 1, which is
/// read-only, knows nothing of it.
absl::StatusOr<std::vector<Trust>> ReadTrust(Database& db, int64_t variant) {
  std::vector<Trust> trust;
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  if (version < 2) return trust;
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare("SELECT fingerprint, machine, checks, verified_s FROM trust "
                              "WHERE variant = ? ORDER BY verified_s DESC, fingerprint, machine"));
  find.Bind(variant);
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return trust;
    trust.push_back({find.Text(0), find.Text(1), find.Text(2), find.Int(3)});
  }
}

absl::Status WriteTrustOf(Database& db, int64_t variant, const Trust& trust) {
  ASSIGN_OR_RETURN(Statement insert,
                   db.Prepare("INSERT OR REPLACE INTO trust(variant, fingerprint, machine, checks, "
                              "verified_s) VALUES (?, ?, ?, ?, ?)"));
  insert.Bind(variant).Bind(trust.fingerprint).Bind(trust.machine).Bind(trust.checks);
  return insert.Bind(trust.verified_s).Run();
}

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

/// Inserts the variant, or replaces what is known of it. What left it out stays where it was left
/// out again; where it ran, its failures are forgotten.
absl::Status WriteVariant(Database& db, absl::string_view key, const VariantResult& v) {
  ASSIGN_OR_RETURN(
      Statement insert,
      InsertOf(db,
               absl::StrCat(
                   "INSERT INTO variant(key, ", Columns(),
                   ", updated_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                   "ON CONFLICT(key, trace, config) DO UPDATE SET schedule = excluded.schedule, "
                   "protocol = excluded.protocol, verdict = excluded.verdict, "
                   "reason = excluded.reason, median_us = excluded.median_us, "
                   "low_us = excluded.low_us, high_us = excluded.high_us, "
                   "samples = excluded.samples, bytes = excluded.bytes, load = excluded.load, "
                   "updated_s = excluded.updated_s, "
                   "failed_runs = iif(excluded.verdict IN ('measured', 'pruned'), 0, failed_runs), "
                   "deaths = iif(excluded.verdict IN ('measured', 'pruned'), 0, deaths) "
                   "WHERE excluded.verdict <> 'quarantined'"),
               key, v));
  return insert.Bind(Now()).Run();
}

/// The first column of all rows.
absl::StatusOr<std::vector<std::string>> TextsOf(Database& db, absl::string_view sql) {
  ASSIGN_OR_RETURN(Statement find, db.Prepare(sql));
  std::vector<std::string> texts;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return texts;
    texts.push_back(find.Text(0));
  }
}

/// The variant's row, which is inserted where there is none.
absl::StatusOr<int64_t> RowOf(Database& db, absl::string_view key, const VariantResult& v) {
  ASSIGN_OR_RETURN(Statement insert,
                   InsertOf(db,
                            absl::StrCat("INSERT OR IGNORE INTO variant(key, ", Columns(),
                                         ", updated_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                                         "?, ?)"),
                            key, v));
  RETURN_IF_ERROR(insert.Bind(Now()).Run());
  return VariantId(db, key, v);
}

}  // namespace

absl::StatusOr<std::optional<TuningRecord>> ReadRecord(Database& db, absl::string_view prefix) {
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  ASSIGN_OR_RETURN(
      Statement find,
      db.Prepare(absl::StrCat(
          "SELECT d.key, e.text || p.text, d.runner_up, d.necessary_bytes, d.variants, d.complete, "
          "d.created_s, d.best, ",
          ColumnsToRead(version, "b."), ", ", ColumnsToRead(version, "l."),
          ", b.id, l.id, e.id, p.id, ",
          version < 4 ? "0, 0, 0, 0, 0, 0, ''"
                      : "d.tried, d.drawn, d.since_gain, d.runs, d.spent_s, d.load, d.soft",
          " FROM decision d LEFT JOIN env e ON e.id = d.env "
          "LEFT JOIN program p ON p.id = d.program LEFT JOIN variant b ON b.id = d.best "
          "LEFT JOIN variant l ON l.id = d.baseline "
          // 'g': after the hex digits
          "WHERE d.key >= ?1 AND d.key < ?1 || 'g' ORDER BY d.created_s DESC, d.key LIMIT 1")));
  ASSIGN_OR_RETURN(const bool found, find.Bind(prefix).Step());
  if (!found) return std::nullopt;
  const char* const kRows[] = {"best variant", "baseline", "environment", "program"};
  for (int i = 0; i < 4; ++i) {
    if (find.IsNull(8 + 2 * kColumnCount + i))
      return absl::InvalidArgumentError(absl::StrCat("its ", kRows[i], " is not in the file"));
  }
  ASSIGN_OR_RETURN(VariantResult best, VariantAt(find, 8));
  ASSIGN_OR_RETURN(VariantResult baseline, VariantAt(find, 8 + kColumnCount));
  TuningRecord record{.key = find.Text(0),
                      .key_text = find.Text(1),
                      .best = std::move(best),
                      .baseline = std::move(baseline),
                      .runner_up = find.Text(2),
                      .necessary_bytes = find.Int(3),
                      .variants = static_cast<int>(find.Int(4)),
                      .complete = find.Int(5) != 0,
                      .search = SearchAt(find, 8 + 2 * kColumnCount + 4),
                      .created_s = find.Int(6),
                      .soft = find.Text(8 + 2 * kColumnCount + 10),
                      .trust = {}};
  ASSIGN_OR_RETURN(record.trust, ReadTrust(db, find.Int(7)));
  if (absl::Status valid = Validate(record); !valid.ok())
    return absl::InvalidArgumentError(valid.message());
  return record;
}

absl::StatusOr<std::vector<std::string>> ReadKeys(Database& db) {
  return TextsOf(db, "SELECT key FROM decision ORDER BY created_s DESC, key");
}

absl::StatusOr<std::vector<std::string>> ReadKeysOfVariants(Database& db) {
  return TextsOf(db, "SELECT DISTINCT key FROM variant ORDER BY key");
}

absl::StatusOr<std::vector<VariantResult>> ReadVariants(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  ASSIGN_OR_RETURN(Statement find, db.Prepare(absl::StrCat("SELECT ", ColumnsToRead(version),
                                                           " FROM variant WHERE key = ? ",
                                                           "ORDER BY samples = 0, median_us, id")));
  find.Bind(key);
  std::vector<VariantResult> variants;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return variants;
    ASSIGN_OR_RETURN(VariantResult v, VariantAt(find, 0));
    variants.push_back(std::move(v));
  }
}

absl::StatusOr<std::vector<VariantResult>> ReadFailures(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare(absl::StrCat("SELECT ", ColumnsToRead(version), ", updated_s",
                                           version < 3 ? ", 0, 0" : ", failed_runs, deaths",
                                           " FROM variant WHERE key = ? ORDER BY id")));
  find.Bind(key);
  std::vector<VariantResult> failures;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return failures;
    absl::StatusOr<VariantResult> v = VariantAt(find, 0);
    if (!v.ok()) continue;  // no variant that could be tried
    v->reason = ReasonToLeaveOut(*v, find.Int(kColumnCount + 1), find.Int(kColumnCount + 2),
                                 find.Int(kColumnCount));
    if (!v->reason.empty()) failures.push_back(*std::move(v));
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
                          "an earlier process died while it ran for the first time", Now()));
  }
  return transaction.Commit();
}

absl::Status MarkInFlight(Database& db, absl::string_view key, const VariantResult& variant) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  ASSIGN_OR_RETURN(const int64_t id, RowOf(db, key, variant));
  RETURN_IF_ERROR(RunOn(db,
                        "INSERT OR REPLACE INTO in_flight(process, since_s, variant) "
                        "VALUES (?, ?, ?)",
                        id, OwnProcess(), Now()));
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
  }
  RETURN_IF_ERROR(
      RunOn(db, absl::StrCat("UPDATE variant SET failed_runs = failed_runs + 1", kUnlessRecorded),
            id, Name(variant.verdict), variant.reason, Now()));
  return transaction.Commit();
}

absl::Status WriteRecord(Database& db, const TuningRecord& record,
                         absl::Span<const VariantResult> variants) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  ASSIGN_OR_RETURN(const bool keep, StoredIsBetter(db, record, variants));
  if (keep) return absl::OkStatus();
  ASSIGN_OR_RETURN(Statement forget, db.Prepare("DELETE FROM decision WHERE key = ?"));
  RETURN_IF_ERROR(forget.Bind(record.key).Run());
  ASSIGN_OR_RETURN(Statement distrust,
                   db.Prepare("DELETE FROM trust WHERE variant IN (SELECT id FROM variant WHERE "
                              "key = ?)"));
  RETURN_IF_ERROR(distrust.Bind(record.key).Run());
  // Variants that are no longer enumerated go, unless something speaks against them.
  ASSIGN_OR_RETURN(
      Statement clear,
      db.Prepare("DELETE FROM variant WHERE key = ? AND failed_runs = 0 AND deaths = 0 "
                 "AND id NOT IN (SELECT variant FROM in_flight)"));
  RETURN_IF_ERROR(clear.Bind(record.key).Run());
  for (const VariantResult& v : variants) RETURN_IF_ERROR(WriteVariant(db, record.key, v));
  const absl::string_view key_text = record.key_text;
  const size_t program_at = ProgramIn(key_text);
  ASSIGN_OR_RETURN(const int64_t env, Intern(db, "env", key_text.substr(0, program_at)));
  ASSIGN_OR_RETURN(const int64_t program, Intern(db, "program", key_text.substr(program_at)));
  ASSIGN_OR_RETURN(const int64_t best, VariantId(db, record.key, record.best));
  ASSIGN_OR_RETURN(const int64_t baseline, VariantId(db, record.key, record.baseline));
  ASSIGN_OR_RETURN(Statement insert,
                   db.Prepare("INSERT INTO decision(key, env, program, best, baseline, runner_up, "
                              "necessary_bytes, variants, complete, created_s, tried, drawn, "
                              "since_gain, runs, spent_s, load, soft) "
                              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.Bind(record.key).Bind(env).Bind(program).Bind(best).Bind(baseline);
  insert.Bind(record.runner_up).Bind(record.necessary_bytes).Bind(record.variants);
  insert.Bind(static_cast<int64_t>(record.complete)).Bind(record.created_s);
  const SearchState& search = record.search;
  insert.Bind(search.tried).Bind(search.drawn).Bind(search.since_gain).Bind(search.runs);
  insert.Bind(search.spent_s).Bind(search.load).Bind(record.soft);
  RETURN_IF_ERROR(insert.Run());
  for (const Trust& trust : record.trust) RETURN_IF_ERROR(WriteTrustOf(db, best, trust));
  return transaction.Commit();
}

absl::Status WriteTrust(Database& db, absl::string_view key, const VariantResult& variant,
                        const Trust& trust) {
  ASSIGN_OR_RETURN(const int64_t id, VariantId(db, key, variant));
  return WriteTrustOf(db, id, trust);
}

absl::Status ForgetTrust(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(Statement forget,
                   db.Prepare("DELETE FROM trust WHERE variant IN (SELECT id FROM variant WHERE "
                              "key = ?)"));
  return forget.Bind(key).Run();
}

absl::Status MarkIncomplete(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(
      Statement mark,
      db.Prepare("UPDATE decision SET complete = 0, tried = 0, drawn = 0, since_gain = "
                 "0, runs = 0 WHERE key = ?"));
  return mark.Bind(key).Run();
}

absl::Status MarkStale(Database& db, absl::string_view key, absl::string_view soft) {
  ASSIGN_OR_RETURN(
      Statement mark,
      db.Prepare("UPDATE decision SET complete = 0, runs = 0, soft = ? WHERE key = ?"));
  return mark.Bind(soft).Bind(key).Run();
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

absl::Status DeleteKey(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  for (const char* sql :
       {"DELETE FROM decision WHERE key = ?", "DELETE FROM variant WHERE key = ?"}) {
    ASSIGN_OR_RETURN(Statement statement, db.Prepare(sql));
    RETURN_IF_ERROR(statement.Bind(key).Run());
  }
  RETURN_IF_ERROR(db.Execute("DELETE FROM env WHERE id NOT IN (SELECT env FROM decision)"));
  RETURN_IF_ERROR(db.Execute("DELETE FROM program WHERE id NOT IN (SELECT program FROM decision)"));
  return transaction.Commit();
}

}  // namespace coconet
