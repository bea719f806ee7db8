#include "autotune/store/record_rows.h"

#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autotune/store/upkeep/use_rows.h"
#include "autotune/store/variant_rows.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// The state of the search in columns `first`... of the current row.
SearchState SearchAt(const Statement& row, int first) {
  return {.tried = static_cast<int>(row.Int(first)),
          .drawn = static_cast<int>(row.Int(first + 1)),
          .since_gain = static_cast<int>(row.Int(first + 2)),
          .runs = static_cast<int>(row.Int(first + 3)),
          .spent_s = row.Real(first + 4),
          .load = row.Real(first + 5),
          .left_out = static_cast<int>(row.Int(first + 6))};
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

/// The columns of a record; a file that is read-only may be of an earlier version.
std::string RecordColumns(int64_t version) {
  return absl::StrCat(
      "d.key, e.text, p.text, d.runner_up, d.necessary_bytes, d.variants, d.complete, "
      "d.created_s, d.best, ",
      VariantColumns(version, "b."), ", ", VariantColumns(version, "l."),
      ", b.id, l.id, e.id, p.id, ",
      version < 4 ? "0, 0, 0, 0, 0, 0"
                  : "d.tried, d.drawn, d.since_gain, d.runs, d.spent_s, d.load",
      version < 6 ? ", 0, " : ", d.left_out, ", version < 4 ? "''" : "d.soft",
      version < 7 ? ", 0" : ", d.imported",
      version < 8 ? ", 1, 1, 1, 0, 0"
                  : ", d.speed_up, d.speed_up_low, d.speed_up_high, d.speed_up_rounds, "
                    "d.meeting_us",
      " FROM decision d LEFT JOIN env e ON e.id = d.env "
      "LEFT JOIN program p ON p.id = d.program LEFT JOIN variant b ON b.id = d.best "
      "LEFT JOIN variant l ON l.id = d.baseline ");
}
constexpr int kBestId = 8, kVariantsAt = 9, kIdsAt = kVariantsAt + 2 * kVariantColumns;  // columns

/// The record in the current row of RecordColumns, without what was verified.
absl::StatusOr<TuningRecord> RecordAt(const Statement& row, ParsedConfigs* configs = nullptr) {
  const char* const kRows[] = {"best variant", "baseline", "environment", "program"};
  for (int i = 0; i < 4; ++i) {
    if (row.IsNull(kIdsAt + i))
      return absl::InvalidArgumentError(absl::StrCat("its ", kRows[i], " is not in the file"));
  }
  absl::StatusOr<TuningRecord> made(absl::in_place);
  TuningRecord& record = *made;
  ASSIGN_OR_RETURN(record.best, VariantAt(row, kVariantsAt, configs));
  ASSIGN_OR_RETURN(record.baseline, VariantAt(row, kVariantsAt + kVariantColumns, configs));
  record.key = row.Text(0);
  record.key_text = absl::StrCat(row.View(1), row.View(2));
  record.runner_up = row.Text(3);
  record.necessary_bytes = row.Int(4);
  record.variants = static_cast<int>(row.Int(5));
  record.complete = row.Int(6) != 0;
  record.created_s = row.Int(7);
  record.search = SearchAt(row, kIdsAt + 4);
  record.soft = row.Text(kIdsAt + 11);
  record.imported = row.Int(kIdsAt + 12) != 0;
  record.speed_up = {.ratio = row.Real(kIdsAt + 13),
                     .low = row.Real(kIdsAt + 14),
                     .high = row.Real(kIdsAt + 15),
                     .rounds = static_cast<int>(row.Int(kIdsAt + 16)),
                     .meeting_us = row.Real(kIdsAt + 17)};
  if (absl::Status valid = Validate(record); !valid.ok())
    return absl::InvalidArgumentError(valid.message());
  return made;
}

constexpr absl::string_view kNewestTrust = " ORDER BY verified_s DESC, fingerprint, machine";

/// Files of version 1, which are read-only, know nothing of verifications.
absl::StatusOr<bool> HasTrust(Database& db) {
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  return version >= 2;
}

/// What was verified of the best variants of all records, by their ids, the newest first.
absl::StatusOr<absl::flat_hash_map<int64_t, std::vector<Trust>>> TrustOfBest(Database& db) {
  absl::flat_hash_map<int64_t, std::vector<Trust>> trust;
  ASSIGN_OR_RETURN(const bool known, HasTrust(db));
  if (!known) return trust;
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare(absl::StrCat("SELECT variant, fingerprint, machine, checks, "
                                           "verified_s FROM trust WHERE variant IN "
                                           "(SELECT best FROM decision)",
                                           kNewestTrust)));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return trust;
    trust[find.Int(0)].push_back({find.Text(1), find.Text(2), find.Text(3), find.Int(4)});
  }
}

/// What was verified of the variant with this id, the newest first.
absl::StatusOr<std::vector<Trust>> TrustOfId(Database& db, int64_t variant) {
  std::vector<Trust> trust;
  ASSIGN_OR_RETURN(const bool known, HasTrust(db));
  if (!known) return trust;
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare(absl::StrCat("SELECT fingerprint, machine, checks, verified_s FROM "
                                           "trust WHERE variant = ?",
                                           kNewestTrust)));
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

}  // namespace

absl::StatusOr<std::optional<TuningRecord>> ReadRecord(Database& db, absl::string_view prefix) {
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  ASSIGN_OR_RETURN(
      Statement find,
      db.Prepare(absl::StrCat(
          "SELECT ", RecordColumns(version),
          // 'g': after the hex digits
          "WHERE d.key >= ?1 AND d.key < ?1 || 'g' ORDER BY d.created_s DESC, d.key LIMIT 1")));
  ASSIGN_OR_RETURN(const bool found, find.Bind(prefix).Step());
  if (!found) return std::nullopt;
  ASSIGN_OR_RETURN(TuningRecord record, RecordAt(find));
  ASSIGN_OR_RETURN(record.trust, TrustOfId(db, find.Int(kBestId)));
  return record;
}

absl::Status ReadRecords(Database& db, absl::FunctionRef<void(RecordRow)> take) {
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  // In the order of the table: sorting rows takes SQLite longer than reading them.
  ASSIGN_OR_RETURN(Statement find, db.Prepare(absl::StrCat("SELECT ", RecordColumns(version))));
  ASSIGN_OR_RETURN(auto trust, TrustOfBest(db));
  ParsedConfigs configs;
  struct Read {
    int64_t created_s;
    RecordRow row;
  };
  std::vector<Read> rows;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, find.Step());
    if (!more) break;
    rows.push_back({find.Int(7), {find.Text(0), RecordAt(find, &configs)}});
    absl::StatusOr<TuningRecord>& record = rows.back().row.record;
    const auto verified = trust.find(find.Int(kBestId));
    if (record.ok() && verified != trust.end()) record->trust = verified->second;
  }
  std::vector<int> order(rows.size());
  absl::c_iota(order, 0);
  absl::c_sort(order, [&](int a, int b) {
    return std::tie(rows[b].created_s, rows[a].row.key) <
           std::tie(rows[a].created_s, rows[b].row.key);
  });
  for (int at : order) take(std::move(rows[at].row));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<KeyOfRecord>> ReadKeyTexts(Database& db) {
  // Sorted here, since SQLite would move the texts.
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare("SELECT d.key, e.text, p.text, d.created_s FROM decision d "
                              "JOIN env e ON e.id = d.env JOIN program p ON p.id = d.program"));
  std::vector<std::pair<int64_t, KeyOfRecord>> rows;  // by the time of their making
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) break;
    rows.push_back({find.Int(3), {find.Text(0), absl::StrCat(find.View(1), find.View(2))}});
  }
  absl::c_sort(rows, [](const auto& a, const auto& b) {
    return std::tie(b.first, a.second.key) < std::tie(a.first, b.second.key);
  });
  std::vector<KeyOfRecord> keys;
  keys.reserve(rows.size());
  for (auto& [created_s, key] : rows) keys.push_back(std::move(key));
  return keys;
}

absl::Status WriteRecord(Database& db, const TuningRecord& record,
                         absl::Span<const VariantResult> variants) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  ASSIGN_OR_RETURN(const bool keep, StoredIsBetter(db, record, variants));
  if (keep) return absl::OkStatus();
  RETURN_IF_ERROR(ReplaceRecord(db, record, variants));
  return transaction.Commit();
}

absl::Status ReplaceRecord(Database& db, const TuningRecord& record,
                           absl::Span<const VariantResult> variants) {
  ASSIGN_OR_RETURN(Statement forget, db.Prepare("DELETE FROM decision WHERE key = ?"));
  RETURN_IF_ERROR(forget.Bind(record.key).Run());
  ASSIGN_OR_RETURN(Statement distrust,
                   db.Prepare("DELETE FROM trust WHERE variant IN (SELECT id FROM variant WHERE "
                              "key = ?)"));
  RETURN_IF_ERROR(distrust.Bind(record.key).Run());
  // Variants that are no longer enumerated go, unless something speaks against them, or they are
  // pinned.
  ASSIGN_OR_RETURN(
      Statement clear,
      db.Prepare("DELETE FROM variant WHERE key = ? AND failed_runs = 0 AND deaths = 0 "
                 "AND id NOT IN (SELECT variant FROM in_flight) AND (trace, config) NOT IN "
                 "(SELECT trace, config FROM pin WHERE pin.key = variant.key)"));
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
                              "since_gain, runs, spent_s, load, left_out, soft, imported, "
                              "speed_up, speed_up_low, speed_up_high, speed_up_rounds, meeting_us) "
                              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                              "?, ?, ?, ?)"));
  insert.Bind(record.key).Bind(env).Bind(program).Bind(best).Bind(baseline);
  insert.Bind(record.runner_up).Bind(record.necessary_bytes).Bind(record.variants);
  insert.Bind(static_cast<int64_t>(record.complete)).Bind(record.created_s);
  const SearchState& search = record.search;
  insert.Bind(search.tried).Bind(search.drawn).Bind(search.since_gain).Bind(search.runs);
  insert.Bind(search.spent_s).Bind(search.load).Bind(search.left_out);
  insert.Bind(record.soft).Bind(static_cast<int64_t>(record.imported));
  const SpeedUp& up = record.speed_up;
  insert.Bind(up.ratio).Bind(up.low).Bind(up.high).Bind(up.rounds).Bind(up.meeting_us);
  RETURN_IF_ERROR(insert.Run());
  for (const Trust& trust : record.trust) RETURN_IF_ERROR(WriteTrustOf(db, best, trust));
  return WriteLastUse(db, record.key);
}

absl::StatusOr<std::vector<Trust>> ReadTrust(Database& db, absl::string_view key,
                                             const VariantResult& variant) {
  ASSIGN_OR_RETURN(Statement find,
                   OfVariant(db, absl::StrCat("SELECT id FROM variant", kOfVariant), key, variant));
  ASSIGN_OR_RETURN(const bool stored, find.Step());
  if (!stored) return std::vector<Trust>();
  return TrustOfId(db, find.Int(0));
}

absl::Status WriteTrust(Database& db, absl::string_view key, const VariantResult& variant,
                        const Trust& trust) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  VariantResult untimed = variant;
  untimed.verdict = Verdict::kNotMeasured;
  untimed.timing = {};
  ASSIGN_OR_RETURN(const int64_t id, RowOf(db, key, untimed));
  RETURN_IF_ERROR(WriteTrustOf(db, id, trust));
  return transaction.Commit();
}

absl::Status ForgetTrust(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(Statement forget,
                   db.Prepare("DELETE FROM trust WHERE variant IN (SELECT id FROM variant WHERE "
                              "key = ?)"));
  RETURN_IF_ERROR(forget.Bind(key).Run());
  ASSIGN_OR_RETURN(Statement buckets, db.Prepare("UPDATE bucket SET code = '' WHERE key = ?"));
  return buckets.Bind(key).Run();
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

absl::Status DeleteKey(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  RETURN_IF_ERROR(DeleteKeys(db, {std::string(key)}, [] { return true; }).status());
  return transaction.Commit();
}

absl::StatusOr<size_t> DeleteKeys(Database& db, absl::Span<const std::string> keys,
                                  absl::FunctionRef<absl::StatusOr<bool>()> go_on) {
  size_t deleted = 0;
  for (const std::string& key : keys) {
    ASSIGN_OR_RETURN(const bool more, go_on());
    if (!more) break;
    ASSIGN_OR_RETURN(Statement texts,
                     db.Prepare("SELECT env, program FROM decision WHERE key = ?"));
    ASSIGN_OR_RETURN(const bool has_texts, texts.Bind(key).Step());
    const int64_t env = texts.Int(0), program = texts.Int(1);
    for (const char* sql :
         {"DELETE FROM decision WHERE key = ?", "DELETE FROM variant WHERE key = ?",
          "DELETE FROM last_use WHERE key = ?", "DELETE FROM history WHERE key = ?",
          "DELETE FROM pin WHERE key = ?", "DELETE FROM bucket WHERE key = ?"}) {
      ASSIGN_OR_RETURN(Statement statement, db.Prepare(sql));
      RETURN_IF_ERROR(statement.Bind(key).Run());
    }
    RETURN_IF_ERROR(db.Execute("DELETE FROM family WHERE key NOT IN (SELECT family FROM bucket)"));
    ++deleted;
    if (!has_texts) continue;
    for (const auto& [sql, id] : {std::pair("DELETE FROM env WHERE id = ?1 AND NOT EXISTS "
                                            "(SELECT 1 FROM decision WHERE env = ?1)",
                                            env),
                                  {"DELETE FROM program WHERE id = ?1 AND NOT EXISTS "
                                   "(SELECT 1 FROM decision WHERE program = ?1)",
                                   program}}) {
      ASSIGN_OR_RETURN(Statement statement, db.Prepare(sql));
      RETURN_IF_ERROR(statement.Bind(id).Run());
    }
  }
  return deleted;
}

}  // namespace coconet
