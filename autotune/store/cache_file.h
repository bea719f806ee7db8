#ifndef COCONET_AUTOTUNE_STORE_CACHE_FILE_H_
#define COCONET_AUTOTUNE_STORE_CACHE_FILE_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/store/database.h"

namespace coconet {

/// Advisory lock of a file beside the database. Everyone who has the database open holds it shared;
/// who moves a damaged one away holds it alone, since a database must not be renamed under those
/// who have it open.
class FileLock {
 public:
  /// Without a lock file (a folder that cannot be written) every call succeeds and locks nothing:
  /// nothing can be renamed there either.
  explicit FileLock(const std::string& file);
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();
  void Share();
  /// False when others kept it for about a second.
  bool TakeAlone();

 private:
  int fd_;
};

/// A checked database of ours, with its lock.
struct OpenCacheFile {
  FileLock lock;
  Database db;
  Access access;
};

/// Opens the tuning cache at `file`, making folders (mode 0700) and file (0600) as needed, and
/// bringing an older schema up to date. A damaged file, or one that is no database, is set aside as
/// FILE.corrupt-<ms>-<pid> (with its -wal and -shm), said to `warn`, and a new one is begun. WAL
/// where it takes effect and all processes share a machine, else a rollback journal.
/// FailedPrecondition: another application's database, a newer schema, or a file that others may
/// write to.
absl::StatusOr<OpenCacheFile> OpenCache(const std::string& file,
                                        const std::function<void(absl::string_view)>& warn);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_STORE_CACHE_FILE_H_
