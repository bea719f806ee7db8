#include "runtime/processes/fabric/fabric_api.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr char kFile[] = "libfabric.so.1";

absl::StatusOr<const FabricApi*> Open() {
  void* library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("ranks on several machines without MPI need libfabric: ", dlerror(),
                     "; install libfabric1"));
  }
  auto* api = new FabricApi;
  absl::Status found;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr)
      found = absl::UnavailableError(absl::StrCat(kFile, ": no function ", name));
  };
  find("fi_getinfo", api->getinfo);
  find("fi_freeinfo", api->freeinfo);
  find("fi_dupinfo", api->dupinfo);
  find("fi_fabric", api->fabric);
  find("fi_strerror", api->strerror);
  RETURN_IF_ERROR(found);
  return api;
}

}  // namespace

absl::StatusOr<const FabricApi*> OpenFabric() {
  static const auto& api = *new absl::StatusOr<const FabricApi*>(Open());
  return api;
}

absl::Status FabricStatus(const FabricApi& api, int64_t code, absl::string_view call) {
  if (code >= 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, ": ", api.strerror(static_cast<int>(-code))));
}

}  // namespace coconet
