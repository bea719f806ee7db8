#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace coconet {

/// A prepared statement, whose values are bound, never pasted into SQL. Used by one thread;
/// destroyed before its Database.
class Statement {
 public:
  /// Binds the next parameter, in order.
  Statement& Bind(absl::string_view text);
  Statement& Bind(int64_t value);
  Statement& Bind(int value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(double value);

  /// True when there is a row to read; false at the end.
  absl::StatusOr<bool> Step();
  /// Runs to the end; for statements without rows.
  absl::Status Run();

  // A column of the current row; "" or 0 if it has another type.
  std::string Text(int column) const { return std::string(View(column)); }
  /// Until the next Step.
  absl::string_view View(int column) const;
  int64_t Int(int column) const;
  double Real(int column) const;
  bool IsNull(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  sqlite3* db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
  int bind_error_ = 0;
};

enum class Access : uint8_t {
  kReadOnly,
  kReadWrite,
  /// Reads the file alone, without locks and journals, as in a folder in which none can be made.
  /// Concurrent writes may be seen in part.
  kImmutable,
};

/// A connection to an SQLite file, with defensive settings, which waits up to 5 s for other
/// writers. Errors: DataLoss for a damaged file or one that is no database, Unavailable when others
/// lock it for longer, ResourceExhausted for a full disk, FailedPrecondition if permissions are
/// missing.
class Database {
 public:
  /// kReadWrite creates the file when it is missing; if `file` is "", a temporary one, which other
  /// connections cannot open, and which is deleted with the Database.
  static absl::StatusOr<Database> Open(const std::string& file, Access access);
  /// Runs statements without parameters or rows. `sql` is a literal, never data.
  absl::Status Execute(const char* sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql);
  /// Whether the file's header says that it is read with a write-ahead log.
  absl::StatusOr<bool> IsForWal();
  /// Writes a copy of the database, without unused pages, to `file`, which is missing or empty.
  absl::Status CopyTo(const std::string& file);
  /// Gives unused pages back to the file system. Waits for other connections, as a write does.
  absl::Status Shrink();
  // First column of the first row; 0 or "" when there is none.
  absl::StatusOr<int64_t> QueryInt(absl::string_view sql);
  absl::StatusOr<std::string> QueryText(absl::string_view sql);

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  explicit Database(sqlite3* db) : db_(db) {}
  std::unique_ptr<sqlite3, Close> db_;
};

/// A transaction, which rolls back unless committed. IMMEDIATE, since a deferred transaction that
/// reads, then writes, fails without waiting when another process has written in between.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Database& db);
  /// A read-only transaction: all its queries see the same state.
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
