#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/store/database.h"
#include "autotune/store/record.h"
#include "coconet/base/status.h"
#include "jit/config/config.h"

namespace coconet {

// Rows of the table of variants in a tuning cache (cache_file.h). Rows that are read are parsed and
// range-checked: InvalidArgument says why a row is invalid; other errors are the database's.

/// The number of columns that a variant is read from.
inline constexpr int kVariantColumns = 12;
/// "b.trace, b.config, ..." for the table "b.", in a file of this version: one that is read-only
/// may be of an earlier one.
std::string VariantColumns(int64_t version, absl::string_view table = "");
/// Configs by their texts, of which many rows have the same few.
using ParsedConfigs = absl::flat_hash_map<std::string, Config>;
/// The variant in columns `first`... of the current row; `configs`, if it is not null, remembers
/// what was parsed.
absl::StatusOr<VariantResult> VariantAt(const Statement& row, int first,
                                        ParsedConfigs* configs = nullptr);

inline constexpr absl::string_view kOfVariant = " WHERE key = ? AND trace = ? AND config = ?";
/// A statement about one variant: `sql`, then parameters `before`, then those of kOfVariant.
template <class... Before>
absl::StatusOr<Statement> OfVariant(Database& db, absl::string_view sql, absl::string_view key,
                                    const VariantResult& v, const Before&... before) {
  ASSIGN_OR_RETURN(Statement statement, db.Prepare(sql));
  (statement.Bind(before), ...);
  statement.Bind(key).Bind(v.trace).Bind(Text(v.config));
  return statement;
}

/// The number in the first row; Internal if there is no row.
absl::StatusOr<int64_t> IdOf(Statement find, absl::string_view what);
/// The variant's id; Internal if it is not stored.
absl::StatusOr<int64_t> VariantId(Database& db, absl::string_view key, const VariantResult& v);
/// The variant's id; it is inserted if it is not stored.
absl::StatusOr<int64_t> RowOf(Database& db, absl::string_view key, const VariantResult& v);
/// Inserts the variant, or replaces its stored result. If it was left out again, the reason stays;
/// if it ran, its failures are forgotten.
absl::Status WriteVariant(Database& db, absl::string_view key, const VariantResult& v);

/// All variants of a key, the fastest first, variants without a time last.
absl::StatusOr<std::vector<VariantResult>> ReadVariants(Database& db, absl::string_view key);
/// The keys of all variants.
absl::StatusOr<std::vector<std::string>> ReadKeysOfVariants(Database& db);
/// The first column of all rows.
absl::StatusOr<std::vector<std::string>> TextsOf(Database& db, absl::string_view sql);

/// The time by the system's clock, in seconds since 1970.
int64_t NowSeconds();

}  // namespace coconet
