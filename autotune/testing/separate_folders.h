#pragma once

#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace coconet {

/// A path that names another folder in each thread that has called LiveOn, so that ranks which are
/// threads do not see each other's files, as on machines without a common file system.
inline constexpr char kFolderOfThisMachine[] = "/proc/thread-self/cwd/cache";

/// Puts the calling thread, and those that it starts, on the machine whose files are in `folder`.
inline absl::Status LiveOn(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  // The working directory is this thread's own from here on.
  if (unshare(CLONE_FS) != 0 || chdir(folder.c_str()) != 0)
    return absl::InternalError(absl::StrCat(folder.string(), ": ", std::strerror(errno)));
  return absl::OkStatus();
}

}  // namespace coconet
