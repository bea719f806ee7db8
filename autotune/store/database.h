#ifndef COCONET_AUTOTUNE_STORE_DATABASE_H_
#define COCONET_AUTOTUNE_STORE_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace coconet {

/// A prepared statement. Values are bound, never pasted into SQL. Used by one thread; must not
/// outlive its Database.
class Statement {
 public:
  Statement(Statement&&) noexcept;
  Statement& operator=(Statement&&) noexcept;
  ~Statement();

  /// Binds the next parameter, in order.
  Statement& Bind(absl::string_view text);
  Statement& Bind(int64_t value);
  Statement& Bind(int value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(double value);
  Statement& BindNull();

  /// True: a row is there to be read. False: done.
  absl::StatusOr<bool> Step();
  /// Runs to the end; for statements without rows.
  absl::Status Run();

  // Columns of the current row; of another type: "", 0.
  std::string Text(int column) const;
  int64_t Int(int column) const;
  double Real(int column) const;
  bool IsNull(int column) const;

 private:
  friend class Database;
  Statement(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  sqlite3* db_;
  sqlite3_stmt* statement_;
  int bound_ = 0;
  int bind_error_ = 0;
};

enum class Access : uint8_t { kReadOnly, kReadWrite };

/// One connection to an SQLite file, with defensive settings, waiting up to 5 s for other writers.
/// Errors: DataLoss for a damaged file or one that is no database, Unavailable when others hold it
/// too long, ResourceExhausted for a full disk, FailedPrecondition for what may not be opened or
/// written.
class Database {
 public:
  /// kReadWrite creates the file when it is missing.
  static absl::StatusOr<Database> Open(const std::string& file, Access access);
  Database(Database&& other) noexcept : db_(other.db_) { other.db_ = nullptr; }
  Database& operator=(Database&&) noexcept;
  ~Database();

  /// Runs statements without parameters or rows. `sql` is ours, never data.
  absl::Status Execute(const char* sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql);
  /// First column of the first row; 0 and "" for no row.
  absl::StatusOr<int64_t> QueryInt(absl::string_view sql);
  absl::StatusOr<std::string> QueryText(absl::string_view sql);
  int64_t last_insert_id() const;

 private:
  explicit Database(sqlite3* db) : db_(db) {}
  sqlite3* db_;
};

/// BEGIN IMMEDIATE ... COMMIT: rolls back unless committed. IMMEDIATE, since a deferred transaction
/// that reads and then writes fails at once when another has written in between, whatever the busy
/// timeout.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Database& db);
  /// Its queries see one moment of the database; it does not write.
  static absl::StatusOr<Transaction> BeginRead(Database& db);
  Transaction(Transaction&& other) noexcept : db_(other.db_) { other.db_ = nullptr; }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  absl::Status Commit();

 private:
  explicit Transaction(Database* db) : db_(db) {}
  Database* db_;
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_STORE_DATABASE_H_
