#include "autotune/store/variant_rows.h"

#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace coconet {
namespace {

constexpr const char* kColumns[] = {"trace",   "config",  "schedule",  "protocol",
                                    "verdict", "reason",  "median_us", "low_us",
                                    "high_us", "samples", "bytes",     "load"};
static_assert(std::size(kColumns) == kVariantColumns);

/// "b.trace, b.config, ..." for the table "b.".
std::string Columns(absl::string_view table = "") {
  return absl::StrJoin(kColumns, ", ", [&](std::string* out, const char* column) {
    absl::StrAppend(out, table, column);
  });
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

absl::StatusOr<Config> ConfigOf(absl::string_view text, ParsedConfigs* configs) {
  if (configs == nullptr) return ParseConfig(text);
  if (const auto known = configs->find(text); known != configs->end()) return known->second;
  ASSIGN_OR_RETURN(const Config config, ParseConfig(text));
  configs->emplace(text, config);
  return config;
}

}  // namespace

std::string VariantColumns(int64_t version, absl::string_view table) {
  if (version >= 4) return Columns(table);
  const std::string columns = Columns(table);
  return absl::StrCat(absl::StripSuffix(columns, absl::StrCat(table, "load")), "0");
}

absl::StatusOr<VariantResult> VariantAt(const Statement& row, int first, ParsedConfigs* configs) {
  const std::optional<Verdict> verdict = ParseVerdict(row.View(first + 4));
  if (!verdict.has_value())
    return absl::InvalidArgumentError(absl::StrCat("no verdict '", row.Text(first + 4), "'"));
  absl::StatusOr<VariantResult> made(absl::in_place);
  VariantResult& v = *made;
  ASSIGN_OR_RETURN(v.config, ConfigOf(row.View(first + 1), configs));
  v.trace = row.Text(first);
  v.schedule = row.Text(first + 2);
  v.protocol = row.Text(first + 3);
  v.verdict = *verdict;
  v.reason = row.Text(first + 5);
  v.timing = {row.Real(first + 6), row.Real(first + 7), row.Real(first + 8),
              static_cast<int>(row.Int(first + 9))};
  v.bytes = row.Int(first + 10);
  v.load = row.Real(first + 11);
  return made;
}

absl::StatusOr<int64_t> IdOf(Statement find, absl::string_view what) {
  ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) return absl::InternalError(absl::StrCat("not stored: ", what));
  return find.Int(0);
}

absl::StatusOr<int64_t> VariantId(Database& db, absl::string_view key, const VariantResult& v) {
  ASSIGN_OR_RETURN(Statement find,
                   OfVariant(db, absl::StrCat("SELECT id FROM variant", kOfVariant), key, v));
  return IdOf(std::move(find), Words(v));
}

absl::StatusOr<int64_t> RowOf(Database& db, absl::string_view key, const VariantResult& v) {
  ASSIGN_OR_RETURN(Statement insert,
                   InsertOf(db,
                            absl::StrCat("INSERT OR IGNORE INTO variant(key, ", Columns(),
                                         ", updated_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                                         "?, ?)"),
                            key, v));
  RETURN_IF_ERROR(insert.Bind(NowSeconds()).Run());
  return VariantId(db, key, v);
}

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
  return insert.Bind(NowSeconds()).Run();
}

absl::StatusOr<std::vector<std::string>> TextsOf(Database& db, absl::string_view sql) {
  ASSIGN_OR_RETURN(Statement find, db.Prepare(sql));
  std::vector<std::string> texts;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return texts;
    texts.push_back(find.Text(0));
  }
}

absl::StatusOr<std::vector<std::string>> ReadKeysOfVariants(Database& db) {
  return TextsOf(db, "SELECT DISTINCT key FROM variant ORDER BY key");
}

absl::StatusOr<std::vector<VariantResult>> ReadVariants(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  ASSIGN_OR_RETURN(Statement find, db.Prepare(absl::StrCat("SELECT ", VariantColumns(version),
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

int64_t NowSeconds() { return absl::ToUnixSeconds(absl::Now()); }

}  // namespace coconet
