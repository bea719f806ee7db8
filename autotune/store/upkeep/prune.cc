#include "autotune/store/upkeep/prune.h"

#include <utility>

#include "autotune/store/record_rows.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

struct KeyUse {
  std::string key;
  int64_t used_s = 0;
};

/// The keys that may go, the one that was not used for the longest time first.
absl::StatusOr<std::vector<KeyUse>> Removable(Database& db, const std::string& keep) {
  ASSIGN_OR_RETURN(Statement find,
                   db.Prepare("SELECT key, max(used) FROM ("
                              "SELECT key, created_s AS used FROM decision UNION ALL "
                              "SELECT key, used_s FROM last_use UNION ALL "
                              "SELECT key, max(updated_s) FROM variant GROUP BY key) "
                              "WHERE key <> ? AND key NOT IN (SELECT key FROM pin) AND key NOT IN "
                              "(SELECT v.key FROM in_flight f JOIN variant v ON v.id = f.variant) "
                              "GROUP BY key ORDER BY 2, key"));
  find.Bind(keep);
  std::vector<KeyUse> keys;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return keys;
    keys.push_back({find.Text(0), find.Int(1)});
  }
}

/// Deletes predictions made before the time, and returns their number.
absl::StatusOr<int64_t> ForgetPredictions(Database& db, int64_t before_s) {
  ASSIGN_OR_RETURN(Statement forget, db.Prepare("DELETE FROM prediction WHERE created_s < ?"));
  RETURN_IF_ERROR(forget.Bind(before_s).Run());
  return db.QueryInt("SELECT changes()");
}

}  // namespace

absl::StatusOr<int64_t> BytesInUse(Database& db) {
  ASSIGN_OR_RETURN(const int64_t pages, db.QueryInt("PRAGMA page_count"));
  ASSIGN_OR_RETURN(const int64_t unused, db.QueryInt("PRAGMA freelist_count"));
  ASSIGN_OR_RETURN(const int64_t bytes, db.QueryInt("PRAGMA page_size"));
  return (pages - unused) * bytes;
}

absl::StatusOr<Pruned> Prune(Database& db, const PruneTerms& terms) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  Pruned pruned;
  ASSIGN_OR_RETURN(pruned.bytes_before, BytesInUse(db));
  pruned.bytes_after = pruned.bytes_before;
  ASSIGN_OR_RETURN(const std::vector<KeyUse> removable, Removable(db, terms.keep));
  if (terms.unused_since_s.has_value()) {
    ASSIGN_OR_RETURN(pruned.predictions, ForgetPredictions(db, *terms.unused_since_s));
  }
  std::vector<std::string> keys;
  for (const KeyUse& use : removable) keys.push_back(use.key);
  size_t next = 0;
  const auto go_on = [&]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(pruned.bytes_after, BytesInUse(db));
    const bool old =
        terms.unused_since_s.has_value() && removable[next].used_s < *terms.unused_since_s;
    ++next;
    return old || (terms.bytes.has_value() && pruned.bytes_after > *terms.bytes);
  };
  ASSIGN_OR_RETURN(const size_t deleted, DeleteKeys(db, keys, go_on));
  keys.resize(deleted);
  pruned.keys = std::move(keys);
  ASSIGN_OR_RETURN(pruned.bytes_after, BytesInUse(db));
  if (!terms.dry_run) RETURN_IF_ERROR(transaction.Commit());
  return pruned;
}

}  // namespace coconet
