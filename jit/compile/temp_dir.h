#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace coconet {

/// A directory of mode 0700 under TMPDIR, else /tmp. The destructor removes it with its content, in
/// the process that made it.
class TempDir {
 public:
  /// Unavailable if none can be made.
  static absl::StatusOr<std::unique_ptr<TempDir>> Make();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  const std::string& path() const { return path_; }
  pid_t owner() const { return owner_; }

 private:
  explicit TempDir(std::string path);

  std::string path_;
  pid_t owner_;
};

}  // namespace coconet
