#include "runtime/nccl/nccl_api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "third_party/cuda/paths.h"

namespace coconet {
namespace {

std::string VersionText(int version) {
  const int major = version < 10000 ? 1000 : 10000;  // NCCL_VERSION's encoding changed after 2.8
  return absl::StrCat(version / major, ".", version % major / 100, ".", version % 100);
}

absl::StatusCode CodeOf(ncclResult_t result) {
  switch (result) {
    case ncclRemoteError:
      return absl::StatusCode::kAborted;
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return absl::StatusCode::kInvalidArgument;
    default:  // ncclResult_t is NVIDIA's, and grows
      return absl::StatusCode::kInternal;
  }
}

std::vector<std::string> Places() {
  std::vector<std::string> places = {"libnccl.so.2"};
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0')
    places.push_back(absl::StrCat(home, "/lib64/libnccl.so.2"));
  if (*kNcclHint != '\0') places.push_back(kNcclHint);
  return places;
}

absl::StatusOr<NcclApi> Open() {
  ASSIGN_OR_RETURN(const FindNcclFunction find, FindNcclIn(Places()));
  return FillNcclApi(find);
}

}  // namespace

absl::Status ToStatus(const NcclApi& nccl, ncclResult_t result, absl::string_view call) {
  if (result == ncclSuccess) return absl::OkStatus();
  const char *words = nccl.GetErrorString(result), *last = nccl.GetLastError(nullptr);
  if (words == nullptr) words = "unknown error";
  return absl::Status(
      CodeOf(result),
      absl::StrCat(call, ": ", words, " (", static_cast<int>(result), ")",
                   last == nullptr || *last == '\0' ? "" : absl::StrCat(": ", last)));
}

absl::Status ToStatusOfBegun(const NcclApi& nccl, ncclResult_t result, absl::string_view call) {
  return result == ncclInProgress ? absl::OkStatus() : ToStatus(nccl, result, call);
}

absl::StatusOr<FindNcclFunction> FindNcclIn(absl::Span<const std::string> files) {
  std::vector<std::string> tried;
  for (const std::string& file : files) {
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr)
      return FindNcclFunction([library](const char* name) { return dlsym(library, name); });
    tried.emplace_back(dlerror());
  }
  return absl::UnavailableError(
      absl::StrCat("NCCL cannot be opened (", absl::StrJoin(tried, "; "),
                   "): install libnccl2, or say in LD_LIBRARY_PATH where it is"));
}

absl::StatusOr<NcclApi> FillNcclApi(const FindNcclFunction& find) {
  NcclApi nccl;
  std::vector<std::string> missing;
#define COCONET_NEED(name)                                               \
  nccl.name = reinterpret_cast<decltype(nccl.name)>(find("nccl" #name)); \
  if (nccl.name == nullptr) missing.emplace_back("nccl" #name);
  COCONET_NCCL_FUNCTIONS(COCONET_NEED)
#undef COCONET_NEED
  if (!missing.empty()) {
    return absl::UnavailableError(absl::StrCat("NCCL lacks ", absl::StrJoin(missing, ", "),
                                               ": want version ", VersionText(kLeastNccl),
                                               " or later"));
  }
#define COCONET_TAKE(name) nccl.name = reinterpret_cast<decltype(nccl.name)>(find("nccl" #name));
  COCONET_TAKE(MemAlloc)
  COCONET_TAKE(MemFree)
  COCONET_TAKE(CommWindowRegister)
  COCONET_TAKE(CommWindowDeregister)
  COCONET_TAKE(TeamLsa)
  COCONET_TAKE(GetPeerDevicePointer)
#undef COCONET_TAKE
  int version = 0;
  RETURN_IF_ERROR(ToStatus(nccl, nccl.GetVersion(&version), "ncclGetVersion"));
  nccl.version_code = version;
  nccl.version = VersionText(version);
  if (version >= kLeastNccl) return nccl;
  return absl::UnavailableError(absl::StrCat("NCCL has version ", nccl.version, ": want ",
                                             VersionText(kLeastNccl), " or later"));
}

absl::StatusOr<const NcclApi*> OpenNccl() {
  static const auto* nccl = new absl::StatusOr<NcclApi>(Open());
  if (!nccl->ok()) return nccl->status();
  return &**nccl;
}

}  // namespace coconet
