#include "autotune/store/upkeep/use_rows.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/variant_rows.h"
#include "coconet/base/status.h"
#include "jit/config/config.h"

namespace coconet {
namespace {

constexpr int64_t kDay = 24 * 3600;  // seconds

/// Files before version 7 have no tables of uses and pins.
absl::StatusOr<bool> HasTables(Database& db) {
  ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
  return version >= 7;
}

absl::Status CheckPinnable(const VariantResult& v) {
  if (FailsForGood(v.verdict)) {
    return absl::FailedPreconditionError(
        absl::StrCat(Words(v), ": ", Name(v.verdict), ": ", v.reason));
  }
  if (v.timing.samples < 1)
    return absl::FailedPreconditionError(
        absl::StrCat(Words(v), " was never timed (", Name(v.verdict), ")"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> ReadLastUse(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(const bool known, HasTables(db));
  if (!known) return 0;
  ASSIGN_OR_RETURN(Statement find, db.Prepare("SELECT used_s FROM last_use WHERE key = ?"));
  ASSIGN_OR_RETURN(const bool found, find.Bind(key).Step());
  return found ? find.Int(0) : 0;
}

absl::Status WriteLastUse(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(Statement write,
                   db.Prepare("INSERT OR REPLACE INTO last_use(key, used_s) VALUES (?, ?)"));
  return write.Bind(key).Bind(NowSeconds()).Run();
}

absl::Status NoteUse(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(const int64_t used_s, ReadLastUse(db, key));
  // A clock that was set back makes the time lie in the future.
  const int64_t now_s = NowSeconds();
  if (used_s > now_s - kDay && used_s < now_s + kDay) return absl::OkStatus();
  return WriteLastUse(db, key);
}

absl::Status WritePin(Database& db, absl::string_view key, const VariantResult& variant) {
  RETURN_IF_ERROR(CheckPinnable(variant));
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  RETURN_IF_ERROR(VariantId(db, key, variant).status());
  ASSIGN_OR_RETURN(Statement write,
                   db.Prepare("INSERT OR REPLACE INTO pin(key, trace, config, created_s) "
                              "VALUES (?, ?, ?, ?)"));
  write.Bind(key).Bind(variant.trace).Bind(Text(variant.config)).Bind(NowSeconds());
  RETURN_IF_ERROR(write.Run());
  return transaction.Commit();
}

absl::StatusOr<bool> DeletePin(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(Statement remove, db.Prepare("DELETE FROM pin WHERE key = ? RETURNING key"));
  ASSIGN_OR_RETURN(const bool removed, remove.Bind(key).Step());
  RETURN_IF_ERROR(remove.Run());
  return removed;
}

absl::StatusOr<std::optional<VariantResult>> ReadPin(Database& db, absl::string_view key) {
  ASSIGN_OR_RETURN(const bool known, HasTables(db));
  if (!known) return std::nullopt;
  ASSIGN_OR_RETURN(
      Statement find,
      db.Prepare(absl::StrCat("SELECT p.config, v.id, ", VariantColumns(kCacheSchemaVersion, "v."),
                              " FROM pin p LEFT JOIN variant v ON v.key = p.key AND "
                              "v.trace = p.trace AND v.config = p.config WHERE p.key = ?")));
  ASSIGN_OR_RETURN(const bool found, find.Bind(key).Step());
  if (!found) return std::nullopt;
  if (find.IsNull(1))
    return absl::NotFoundError(absl::StrCat("(", find.Text(0), ") is no longer stored"));
  ASSIGN_OR_RETURN(VariantResult variant, VariantAt(find, 2));
  RETURN_IF_ERROR(CheckPinnable(variant));
  if (const absl::Status valid = Validate(variant); !valid.ok())
    return absl::InvalidArgumentError(absl::StrCat(Words(variant), ": ", valid.message()));
  return variant;
}

}  // namespace coconet
