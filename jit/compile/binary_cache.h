#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coconet/base/descriptor.h"

namespace coconet {

/// Files by name on disk, shared by all processes of one user:
///
///   <dir>/objects/<first 2 digits>/<64 hex digits>.<extension>
///       the content, then a line with the content's SHA-256. The digits are the SHA-256 of the
///       source and of the compiler's identity, which names the processor that it compiles for
///   <dir>/tmp/
///       files being written, and locks
///
/// Loaders of shared objects and of cubins ignore the last line. Directories have mode 0700, files
/// 0600. Find and Read accept only files that this user or root owns and nobody else can write,
/// follow no symbolic link below <dir>, and treat an incomplete file as missing. A file appears
/// under its name complete, by link or rename. If <dir> cannot be written or is full, files go to a
/// temporary directory of this process. Thread-safe.
class BinaryCache {
 public:
  /// Makes `dir` if it is missing. "", or a directory that cannot be made or written, is no error
  /// (see TakeNote). PermissionDenied when `dir` belongs to another user or others can write to it.
  static absl::StatusOr<std::unique_ptr<BinaryCache>> Open(const std::string& dir);

  /// Absolute; "" if there is none.
  const std::string& dir() const { return dir_; }

  /// Whether `name` is "<64 hex digits>.<extension>", as the other calls require of theirs.
  static bool IsName(absl::string_view name);

  /// The path of file `name` if it exists and is complete. Valid as long as this process runs. A
  /// file that this process found complete is not read again unless its times or size changed.
  std::optional<std::string> Find(absl::string_view name) const;

  /// The content of file `name` if it exists and is complete.
  std::optional<std::string> Read(absl::string_view name) const;

  enum class Existing {
    kKeep,     // an existing complete file stays: a process may be mapping it
    kReplace,  // the new content wins
  };
  /// The content of the file at `path`, which a cache of any process returned, under the same
  /// conditions; nullopt if no cache returns such a path.
  static std::optional<std::string> ReadAt(const std::string& path);
  /// Whether ReadAt would return content.
  static bool HasAt(const std::string& path);

  /// Writes a file and returns its path. Fails only if it can be written neither to `dir` nor to a
  /// temporary directory.
  absl::StatusOr<std::string> Store(absl::string_view name, absl::string_view content,
                                    Existing existing);

  /// While it lives, other processes that acquire the same name wait. Only saves work: correctness
  /// does not depend on it. Empty if locks do not work, or if another process held the lock for all
  /// of `patience`.
  class Lock {
   public:
    Lock() = default;
    Lock(Lock&& other) noexcept = default;
    Lock& operator=(Lock&& other) noexcept = default;
    ~Lock();

   private:
    friend class BinaryCache;
    Lock(Descriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
    Descriptor file_;
    std::string path_;
  };
  Lock Acquire(absl::string_view name, absl::Duration patience);

  /// If Store would write to a temporary directory, TakeNote says so from now on.
  void NoteUnlessWritable();
  /// On the first call after files went to a temporary directory: the reason and what to
  /// do; else "".
  std::string TakeNote();

 private:
  BinaryCache(std::string dir, Descriptor root) : dir_(std::move(dir)), root_(std::move(root)) {}

  absl::StatusOr<std::string> StoreIn(const std::string& dir, const Descriptor& root,
                                      absl::string_view name, absl::string_view content,
                                      Existing existing);
  void RemoveAbandonedFiles(const Descriptor& temporary);
  void Note(absl::string_view why);
  bool noted() const;

  const std::string dir_;
  const Descriptor root_;     // of `dir_`; -1: there is none
  mutable std::mutex mutex_;  // guards the following
  std::string note_;
  bool noted_ = false;
  bool cleaned_ = false;
};

}  // namespace coconet
