#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/store/database.h"
#include "coconet/base/descriptor.h"

namespace coconet {

inline constexpr int64_t kCacheApplicationId = 0x436F636F;  // "Coco"
inline constexpr int64_t kCacheSchemaVersion = 9;

/// Checks a database without writing to it: OK if it is empty, or a tuning cache of at most this
/// version. FailedPrecondition for another application's, for a newer version, and for one with
/// views, triggers, virtual tables, or tables and indexes of other names than ours; DataLoss if the
/// schema cannot be read.
absl::Status CheckSchema(Database& db);

/// Reads the whole database. DataLoss for a corrupt one.
absl::Status CheckPages(Database& db);

/// Migrates an empty database or older tuning cache to kCacheSchemaVersion, in one transaction.
/// Several processes may do so at once.
absl::Status Migrate(Database& db);

/// Advisory lock on a file beside the database. A process that has the database open holds it
/// shared; one that moves a damaged database away holds it exclusively, since an open database must
/// not be renamed.
class FileLock {
 public:
  /// If the lock file cannot be created, every call succeeds and locks nothing: in such a folder
  /// nothing can be renamed either.
  explicit FileLock(const std::string& file);
  FileLock() = default;  // locks nothing
  void Share();
  /// False when other processes held the lock for about a second.
  bool TakeAlone();

 private:
  Descriptor file_;
};

/// An open tuning cache whose schema was checked, with its lock.
struct OpenCacheFile {
  FileLock lock;
  Database db;
  Access access;
  uint64_t inode = 0;  // of the database
};

/// The inode of a file; 0: there is none.
uint64_t InodeOf(const std::string& file);

/// How much of an existing file is read to find damage. Some damage is found only when it is
/// reached: checking all would make each job's start take as long as the file is large.
enum class Check : uint8_t { kSchema, kWhole };

/// Opens the tuning cache at `file`. Creates missing folders (mode 0700) and the file (0600), and
/// migrates an older schema, with a copy of the file at FILE.backup-v<version>; opens it for
/// reading if that cannot be written. Renames a damaged file to FILE.corrupt-<ms>-<pid>, with its
/// -wal and -shm, warns, and creates a new one. Opens a file for reading if it, or its folder,
/// cannot be written. Uses WAL on a file system of one machine, else a rollback journal.
/// FailedPrecondition: another application's database, a newer schema, or a file that other users
/// can write.
absl::StatusOr<OpenCacheFile> OpenCache(const std::string& file, Check check,
                                        const std::function<void(absl::string_view)>& warn);

/// Opens a tuning cache for reading, and neither writes to it nor creates, migrates or moves it.
/// NotFound if there is none. FailedPrecondition as of OpenCache; with `foreign`, also if other
/// users than this one and root own its folder or can replace files there.
absl::StatusOr<Database> OpenUnchanged(const std::string& file, bool foreign);

}  // namespace coconet
