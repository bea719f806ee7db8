#include "autotune/store/tuning_rows.h"

#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/store/process_identity.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// A process that is not visible from here counts as dead after this time: no variant's first run
/// takes as long.
constexpr int64_t kInFlightSeconds = 3600;

constexpr absl::string_view kVariantColumns =
    "trace, config, schedule, protocol, verdict, reason, median_us, low_us, high_us, samples, "
    "bytes";
constexpr int kVariantColumnCount = 11;

int64_t Now() { return absl::ToUnixSeconds(absl::Now()); }

/// The variant in columns `first`... of the current row.
absl::StatusOr<VariantResult> VariantAt(const Statement& row, int first) {
  VariantResult v;
  v.trace = row.Text(first);
  ASSIGN_OR_RETURN(v.config, ParseConfig(row.Text(first + 1)));
  v.schedule = row.Text(first + 2);
  v.protocol = row.Text(first + 3);
  const std::string verdict = row.Text(first + 4);
  const std::optional<Verdict> parsed = ParseVerdict(verdict);
  if (!parsed.has_value())
    return absl::InvalidArgumentError(absl::StrCat("no verdict '", verdict, "'"));
  v.verdict = *parsed;
  v.reason = row.Text(first + 5);
  v.timing = {row.Real(first + 6), row.Real(first + 7), row.Real(first + 8),
              static_cast<int>(row.Int(first + 9))};
  v.bytes = row.Int(first + 10);
  return v;
}

void BindVariant(Statement& statement, absl::string_view key, const VariantResult& v) {
  statement.Bind(key)
      .Bind(v.trace)
      .Bind(Text(v.config))
      .Bind(v.schedule)
      .Bind(v.protocol)
      .Bind(Name(v.verdict))
      .Bind(v.reason);
  statement.Bind(v.timing.median_us)
      .Bind(v.timing.low_us)
      .Bind(v.timing.high_us)
      .Bind(v.timing.samples)
      .Bind(v.bytes);
}

/// The id of `text` in a table of texts, which is inserted where it is new. `table` is a literal.
absl::StatusOr<int64_t> Intern(Database& db, absl::string_view table, absl::string_view text) {
  ASSIGN_OR_RETURN(Statement insert,
                   db.Prepare(absl::StrCat("INSERT OR IGNORE INTO ", table, "(text) VALUES (?)")));
  RETURN_IF_ERROR(insert.Bind(text).Run());
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare(absl::StrCat("SELECT id FROM ", table, " WHERE text = ?")));
  ASSIGN_OR_RETURN(const bool found, find.Bind(text).Step());
  if (!found) return absl::InternalError(absl::StrCat(table, ": an inserted text is not there"));
  return find.Int(0);
}

absl::StatusOr<int64_t> VariantId(Database& db, absl::string_view key, const VariantResult& v) {
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare("SELECT id FROM variant WHERE key = ? AND trace = ? AND config = ?"));
  ASSIGN_OR_RETURN(const bool found, find.Bind(key).Bind(v.trace).Bind(Text(v.config)).Step());
  if (!found)
    return absl::InternalError(absl::StrCat("variant not among those stored: ", Words(v)));
  return find.Int(0);
}

absl::Status DeleteKey(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(Statement decision, db.Prepare("DELETE FROM decision WHERE key = ?"));
  RETURN_IF_ERROR(decision.Bind(key).Run());
  ASSIGN_OR_RETURN(Statement variants,
                   db.Prepare("DELETE FROM variant WHERE key = ? AND in_flight IS NULL"));
  return variants.Bind(key).Run();
}

absl::Status WriteVariants(Database& db, absl::string_view key,
                           absl::Span<const VariantResult> variants) {
  const int64_t now = Now();
  for (const VariantResult& v : variants) {
    ASSIGN_OR_RETURN(Statement insert,
                     db.Prepare("INSERT OR REPLACE INTO variant(key, trace, config, schedule, "
                                "protocol, verdict, reason, median_us, "
                                "low_us, high_us, samples, bytes, updated_s) VALUES (?, ?, ?, ?, "
                                "?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    BindVariant(insert, key, v);
    RETURN_IF_ERROR(insert.Bind(now).Run());
  }
  return absl::OkStatus();
}

/// Whether the stored record of the same key is kept.
absl::StatusOr<bool> StoredIsBetter(Database& db, const TuningRecord& record) {
  if (record.complete) return false;
  ASSIGN_OR_RETURN(
      Statement find,
      db.Prepare("SELECT d.complete, v.median_us FROM decision d JOIN variant v ON v.id = d.best "
                 "WHERE d.key = ?"));
  ASSIGN_OR_RETURN(const bool found, find.Bind(record.key).Step());
  return found && (find.Int(0) != 0 || find.Real(1) < record.best.timing.median_us);
}

}  // namespace

KeyHalves SplitKeyText(absl::string_view key_text) {
  constexpr absl::string_view kProgram = "program: ";
  size_t at = absl::StartsWith(key_text, kProgram) ? 0 : key_text.find("\nprogram: ");
  if (at == absl::string_view::npos) return {std::string(key_text), ""};
  if (at != 0) ++at;
  return {std::string(key_text.substr(0, at)), std::string(key_text.substr(at))};
}

absl::StatusOr<std::optional<TuningRecord>> ReadRecord(Database& db, absl::string_view prefix) {
  ASSIGN_OR_RETURN(
      Statement find,
      db.Prepare("SELECT d.key, e.text || p.text, d.runner_up, d.necessary_bytes, d.variants, "
                 "d.complete, d.created_s, "
                 "d.origin, "
                 "b.trace, b.config, b.schedule, b.protocol, b.verdict, b.reason, b.median_us, "
                 "b.low_us, b.high_us, "
                 "b.samples, b.bytes, "
                 "l.trace, l.config, l.schedule, l.protocol, l.verdict, l.reason, l.median_us, "
                 "l.low_us, l.high_us, "
                 "l.samples, l.bytes "
                 "FROM decision d JOIN env e ON e.id = d.env JOIN program p ON p.id = d.program "
                 "JOIN variant b ON b.id = d.best JOIN variant l ON l.id = d.baseline "
                 "WHERE d.key >= ?1 AND d.key < ?1 || 'g' ORDER BY d.created_s DESC, d.key LIMIT "
                 "1"));  // 'g': after the hex
                         // digits
  ASSIGN_OR_RETURN(const bool found, find.Bind(prefix).Step());
  if (!found) return std::nullopt;
  TuningRecord record;
  record.key = find.Text(0);
  record.key_text = find.Text(1);
  record.runner_up = find.Text(2);
  record.necessary_bytes = find.Int(3);
  record.variants = static_cast<int>(find.Int(4));
  record.complete = find.Int(5) != 0;
  record.created_s = find.Int(6);
  record.origin = find.Text(7);
  ASSIGN_OR_RETURN(record.best, VariantAt(find, 8));
  ASSIGN_OR_RETURN(record.baseline, VariantAt(find, 8 + kVariantColumnCount));
  if (absl::Status valid = Validate(record); !valid.ok())
    return absl::InvalidArgumentError(valid.message());
  return record;
}

absl::StatusOr<std::vector<std::string>> ReadKeys(Database& db) {
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare("SELECT key FROM decision ORDER BY created_s DESC, key"));
  std::vector<std::string> keys;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return keys;
    keys.push_back(find.Text(0));
  }
}

absl::StatusOr<std::vector<VariantResult>> ReadVariants(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(Statement find, db.Prepare(absl::StrCat("SELECT ", kVariantColumns,
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
  ASSIGN_OR_RETURN(
      Statement find,
      db.Prepare(absl::StrCat("SELECT ", kVariantColumns,
                              ", in_flight, updated_s FROM variant WHERE key = ? ORDER BY id")));
  find.Bind(key);
  std::vector<VariantResult> failures;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return failures;
    absl::StatusOr<VariantResult> v = VariantAt(find, 0);
    if (!v.ok()) continue;  // no variant that could be tried
    if (!find.IsNull(kVariantColumnCount)) {
      const Life life = LifeOf(find.Text(kVariantColumnCount));
      const bool old = Now() - find.Int(kVariantColumnCount + 1) > kInFlightSeconds;
      if (life == Life::kDead || (life == Life::kUnknown && old)) {
        v->verdict = Verdict::kQuarantined;
        v->reason = "an earlier process died while it ran for the first time";
      }
    }
    if (IsFailure(v->verdict)) failures.push_back(*std::move(v));
  }
}

absl::Status MarkInFlight(Database& db, absl::string_view key, const VariantResult& variant) {
  ASSIGN_OR_RETURN(
      Statement mark,
      db.Prepare("INSERT INTO variant(key, trace, config, schedule, protocol, verdict, reason, "
                 "median_us, low_us, high_us, "
                 "samples, bytes, in_flight, updated_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                 "?, ?13, ?14) "
                 "ON CONFLICT(key, trace, config) DO UPDATE SET in_flight = ?13, updated_s = ?14"));
  BindVariant(mark, key, variant);
  return mark.Bind(OwnProcess()).Bind(Now()).Run();
}

absl::Status ClearInFlight(Database& db, absl::string_view key, const VariantResult& variant) {
  if (!IsFailure(variant.verdict)) {
    ASSIGN_OR_RETURN(
        Statement clear,
        db.Prepare(
            "UPDATE variant SET in_flight = NULL WHERE key = ? AND trace = ? AND config = ?"));
    return clear.Bind(key).Bind(variant.trace).Bind(Text(variant.config)).Run();
  }
  // A record whose best variant has failed is deleted.
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  ASSIGN_OR_RETURN(
      Statement fail,
      db.Prepare("UPDATE variant SET in_flight = NULL, verdict = ?, reason = ?, updated_s = ? "
                 "WHERE key = ? AND trace = ? AND config = ?"));
  fail.Bind(Name(variant.verdict)).Bind(variant.reason).Bind(Now());
  RETURN_IF_ERROR(fail.Bind(key).Bind(variant.trace).Bind(Text(variant.config)).Run());
  ASSIGN_OR_RETURN(
      Statement forget,
      db.Prepare("DELETE FROM decision WHERE best IN (SELECT id FROM variant WHERE key = ? AND "
                 "trace = ? AND config = ?)"));
  RETURN_IF_ERROR(forget.Bind(key).Bind(variant.trace).Bind(Text(variant.config)).Run());
  return transaction.Commit();
}

absl::Status WriteRecord(Database& db, const TuningRecord& record,
                         absl::Span<const VariantResult> variants) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  ASSIGN_OR_RETURN(const bool keep, StoredIsBetter(db, record));
  if (keep) return absl::OkStatus();
  RETURN_IF_ERROR(DeleteKey(db, record.key));
  RETURN_IF_ERROR(WriteVariants(db, record.key, variants));
  const KeyHalves halves = SplitKeyText(record.key_text);
  ASSIGN_OR_RETURN(const int64_t env, Intern(db, "env", halves.environment));
  ASSIGN_OR_RETURN(const int64_t program, Intern(db, "program", halves.program));
  ASSIGN_OR_RETURN(const int64_t best, VariantId(db, record.key, record.best));
  ASSIGN_OR_RETURN(const int64_t baseline, VariantId(db, record.key, record.baseline));
  ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare("INSERT INTO decision(key, env, program, best, baseline, runner_up, "
                 "necessary_bytes, variants, "
                 "complete, origin, created_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.Bind(record.key)
      .Bind(env)
      .Bind(program)
      .Bind(best)
      .Bind(baseline)
      .Bind(record.runner_up)
      .Bind(record.necessary_bytes);
  RETURN_IF_ERROR(insert.Bind(record.variants)
                      .Bind(static_cast<int64_t>(record.complete))
                      .Bind(record.origin)
                      .Bind(record.created_s)
                      .Run());
  return transaction.Commit();
}

}  // namespace coconet
