#include "jit/compile/temp_dir.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coconet {

absl::StatusOr<std::unique_ptr<TempDir>> TempDir::Make() {
  const char* place = std::getenv("TMPDIR");
  if (place == nullptr || *place == '\0') place = "/tmp";
  std::string path = absl::StrCat(place, "/coconet-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::UnavailableError(absl::StrCat("make a temporary directory in ", place, ": ",
                                               std::strerror(errno),
                                               "; set TMPDIR to a writable directory"));
  }
  return std::unique_ptr<TempDir>(new TempDir(std::move(path)));
}

TempDir::TempDir(std::string path) : path_(std::move(path)), owner_(getpid()) {}

TempDir::~TempDir() {
  std::error_code ignored;
  if (getpid() == owner_) std::filesystem::remove_all(path_, ignored);
}

}  // namespace coconet
