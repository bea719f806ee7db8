#include "third_party/onednn/open_onednn.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl_types.h>
#include <oneapi/dnnl/dnnl_version.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

absl::StatusOr<void*> Open() {
  const std::string file = absl::StrCat("libdnnl.so.", DNNL_VERSION_MAJOR);
  const std::string advice = absl::StrCat(
      "install oneDNN ", DNNL_VERSION_MAJOR, ".", DNNL_VERSION_MINOR, " (on Debian libdnnl",
      DNNL_VERSION_MAJOR, "), or say in LD_LIBRARY_PATH where it is");
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("oneDNN, for matrix products, cannot be opened (", dlerror(), "): ", advice));
  }
  using GetVersion = const dnnl_version_t*();
  auto* const get_version = reinterpret_cast<GetVersion*>(dlsym(library, "dnnl_version"));
  const dnnl_version_t* const version = get_version == nullptr ? nullptr : get_version();
  if (version == nullptr || version->minor < DNNL_VERSION_MINOR) {
    const std::string found =
        version == nullptr ? "none" : absl::StrCat(version->major, ".", version->minor);
    dlclose(library);
    return absl::UnavailableError(absl::StrCat("oneDNN, for matrix products: want version ",
                                               DNNL_VERSION_MAJOR, ".", DNNL_VERSION_MINOR, " of ",
                                               file, ", found ", found, ": ", advice));
  }
  return library;
}

}  // namespace

constinit DynamicLibrary onednn_library(&Open);

absl::Status OpenOneDnn() { return onednn_library.Open(); }

}  // namespace coconet
