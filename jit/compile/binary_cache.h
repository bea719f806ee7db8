#ifndef COCONET_JIT_COMPILE_BINARY_CACHE_H_
#define COCONET_JIT_COMPILE_BINARY_CACHE_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "jit/compile/descriptor.h"

namespace coconet {

/// Files by name on disk, shared by all processes of one user:
///
///   <dir>/objects/<first 2 digits>/<64 hex digits>.<extension>   content, then a line with the
///   content's SHA-256 <dir>/tmp/                                                   files being
///   written, and locks
///
/// Loaders of shared objects and of cubins do not mind the line at the end. Directories are 0700
/// and files 0600. Only what this user (or root) owns and nobody else can write is read, no
/// symbolic link below <dir> is followed, and a file that is not whole is not there. A file appears
/// under its name complete, by link or rename. Where <dir> cannot be written (or is full), files go
/// to a temporary directory of this process. Thread-safe.
class BinaryCache {
 public:
  /// Makes `dir` when it is missing; "" or a directory that cannot be made or written is no error
  /// (see TakeNote). PermissionDenied when `dir` belongs to somebody else, or others can write to
  /// it.
  static absl::StatusOr<std::unique_ptr<BinaryCache>> Open(const std::string& dir);

  /// Absolute; "" when there is none.
  const std::string& dir() const { return dir_; }

  /// The path of file `name` ("<64 hex digits>.<extension>"), whole. Valid as long as this process
  /// runs.
  std::optional<std::string> Find(absl::string_view name) const;

  /// The content of file `name`.
  std::optional<std::string> Read(absl::string_view name) const;

  enum class Existing {
    kKeep,     // a whole file that is already there stays: somebody may be mapping it
    kReplace,  // the new content wins
  };
  /// Writes a file, and returns its path. Fails only when neither `dir` nor a temporary directory
  /// takes it.
  absl::StatusOr<std::string> Store(absl::string_view name, absl::string_view content,
                                    Existing existing);

  /// While it lives, other processes that ask for the same name wait. Saves work and is not needed
  /// for correctness: empty where locks do not work, or where another process held it for all of
  /// `patience`.
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

  /// "", or, once, why files go to a temporary directory and what to do about it.
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
  const Descriptor root_;     // -1: there is no `dir_`
  mutable std::mutex mutex_;  // guards what follows
  std::string note_;
  bool noted_ = false;
  bool cleaned_ = false;
};

}  // namespace coconet

#endif  // COCONET_JIT_COMPILE_BINARY_CACHE_H_
