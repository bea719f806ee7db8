#include "autotune/store/database.h"

#include <sqlite3.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int kBusyTimeoutMs = 5000;
constexpr int kLongestField = 1 << 22;  // bytes; a program's text or a failure's reason
constexpr int kLongestSql = 1 << 16;
/// Pages of the file in memory, as a number of KiB: reading all records comes back to many of them.
constexpr char kPageCache[] = "PRAGMA cache_size=-16384";

absl::Status ToStatus(sqlite3* db, int code, absl::string_view call) {
  if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return absl::OkStatus();
  const std::string message =
      absl::StrCat(call, ": ", db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code));
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return absl::UnavailableError(message);
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(message);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::FailedPreconditionError(message);
    default:
      return absl::InternalError(message);  // SQLite's codes are an open set
  }
}

/// The path as part of a URI (sqlite.org/uri.html).
std::string InUri(absl::string_view path) {
  return absl::StrReplaceAll(path, {{"%", "%25"}, {"?", "%3f"}, {"#", "%23"}});
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement& Statement::Bind(absl::string_view text) {
  bind_error_ |=
      sqlite3_bind_text64(statement_.get(), ++bound_, text.data() == nullptr ? "" : text.data(),
                          text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Statement& Statement::Bind(int64_t value) {
  bind_error_ |= sqlite3_bind_int64(statement_.get(), ++bound_, value);
  return *this;
}

Statement& Statement::Bind(double value) {
  bind_error_ |= sqlite3_bind_double(statement_.get(), ++bound_, value);
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  if (bind_error_ != SQLITE_OK) return ToStatus(nullptr, SQLITE_TOOBIG, "bind");
  const int code = sqlite3_step(statement_.get());
  RETURN_IF_ERROR(ToStatus(db_, code, "query"));
  return code == SQLITE_ROW;
}

absl::Status Statement::Run() {
  while (true) {
    ASSIGN_OR_RETURN(const bool row, Step());
    if (!row) return absl::OkStatus();
  }
}

absl::string_view Statement::View(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_TEXT) return "";
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return "";
  return {text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::Real(int column) const { return sqlite3_column_double(statement_.get(), column); }
bool Statement::IsNull(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

absl::StatusOr<Database> Database::Open(const std::string& file, Access access) {
  const int flags = access == Access::kReadWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                 : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  const std::string name = access == Access::kImmutable
                               ? absl::StrCat("file:", InUri(file), "?immutable=1")
                           : access == Access::kReadOnly ? absl::StrCat("file:", InUri(file))
                                                         : file;
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database db(raw);  // closes it even when opening failed
  RETURN_IF_ERROR(ToStatus(raw, code, "open"));
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, kLongestField);
  sqlite3_limit(raw, SQLITE_LIMIT_SQL_LENGTH, kLongestSql);
  sqlite3_limit(raw, SQLITE_LIMIT_ATTACHED, 0);
  RETURN_IF_ERROR(
      db.Execute("PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA foreign_keys=ON; PRAGMA "
                 "synchronous=NORMAL"));
  RETURN_IF_ERROR(db.Execute(kPageCache));
  return db;
}

void Database::Close::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

absl::Status Database::Execute(const char* sql) {
  return ToStatus(db_.get(), sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr), "query");
}

namespace {

/// Admits the one database that VACUUM attaches, as long as it lives. No statement of ours attaches
/// another one.
class WithVacuum {
 public:
  explicit WithVacuum(sqlite3* db) : db_(db) { sqlite3_limit(db_, SQLITE_LIMIT_ATTACHED, 1); }
  ~WithVacuum() { sqlite3_limit(db_, SQLITE_LIMIT_ATTACHED, 0); }
  WithVacuum(const WithVacuum&) = delete;
  WithVacuum& operator=(const WithVacuum&) = delete;

 private:
  sqlite3* const db_;
};

}  // namespace

absl::StatusOr<bool> Database::IsForWal() {
  // Read by way of SQLite: closing a descriptor of our own would drop the locks of this process.
  sqlite3_file* file = nullptr;
  constexpr int kReadVersion = 19;  // its place in the header (sqlite.org/fileformat.html)
  unsigned char version = 0;
  RETURN_IF_ERROR(
      ToStatus(db_.get(), sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_FILE_POINTER, &file),
               "open"));
  if (file == nullptr || file->pMethods == nullptr) return false;
  RETURN_IF_ERROR(
      ToStatus(nullptr, file->pMethods->xRead(file, &version, 1, kReadVersion), "read"));
  return version == 2;
}

absl::Status Database::CopyTo(const std::string& file) {
  const WithVacuum admitted(db_.get());
  ASSIGN_OR_RETURN(Statement copy, Prepare("VACUUM INTO ?"));
  return copy.Bind(file).Run();
}

absl::Status Database::Shrink() {
  const WithVacuum admitted(db_.get());
  return Execute("VACUUM");
}

absl::StatusOr<Statement> Database::Prepare(absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  RETURN_IF_ERROR(ToStatus(db_.get(),
                           sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()),
                                              0, &statement, nullptr),
                           "prepare"));
  return Statement(db_.get(), statement);
}

absl::StatusOr<int64_t> Database::QueryInt(absl::string_view sql) {
  ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Int(0) : 0;
}

absl::StatusOr<std::string> Database::QueryText(absl::string_view sql) {
  ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Text(0) : "";
}

absl::StatusOr<Transaction> Transaction::Begin(Database& db) {
  RETURN_IF_ERROR(db.Execute("BEGIN IMMEDIATE"));
  return Transaction(&db);
}

absl::StatusOr<Transaction> Transaction::BeginRead(Database& db) {
  RETURN_IF_ERROR(db.Execute("BEGIN"));
  return Transaction(&db);
}

Transaction::~Transaction() {
  // Fails where an error has rolled back already.
  if (db_ != nullptr) db_->Execute("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() {
  RETURN_IF_ERROR(db_->Execute("COMMIT"));
  db_ = nullptr;
  return absl::OkStatus();
}

}  // namespace coconet
