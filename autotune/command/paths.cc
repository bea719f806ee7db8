#include "autotune/command/paths.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace coconet {

namespace fs = std::filesystem;

std::string ResolvePath(absl::string_view path, const std::string& folder) {
  return (fs::path(folder) / std::string(path))
      .lexically_normal();  // an absolute path stays what it is
}

std::string UserFolder() {
  if (const char* folder = std::getenv("BUILD_WORKING_DIRECTORY");
      folder != nullptr && *folder != '\0')
    return folder;
  std::error_code error;
  return fs::current_path(error);
}

absl::Status CheckWritable(absl::string_view flag, const std::string& file) {
  if (file.empty() || std::ofstream(file, std::ios::app)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(flag, ": cannot write ", file));
}

}  // namespace coconet
