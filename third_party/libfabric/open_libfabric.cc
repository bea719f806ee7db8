#include "third_party/libfabric/open_libfabric.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

absl::StatusOr<void*> Open() {
  void* const library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  return absl::UnavailableError(absl::StrCat(
      "libfabric, for ranks on several machines that joined out of band, cannot be opened (",
      dlerror(), "): install it (on Debian libfabric1), or say in LD_LIBRARY_PATH where it is"));
}

}  // namespace

constinit DynamicLibrary libfabric_library(&Open);

absl::Status OpenLibfabric() { return libfabric_library.Open(); }

}  // namespace coconet
