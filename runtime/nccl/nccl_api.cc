#include "runtime/nccl/nccl_api.h"

#include "absl/strings/str_cat.h"
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

absl::StatusOr<NcclApi> Open() {
  ASSIGN_OR_RETURN(const FindSymbol find,
                   FindNcclIn(PlacesOf({"libnccl.so.2"}, "CUDA_HOME", kNcclHint)));
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

absl::StatusOr<FindSymbol> FindNcclIn(absl::Span<const std::string> files) {
  const OpenedLibrary opened = OpenFirst(files);
  if (opened.handle != nullptr) return SymbolsOf(opened.handle);
  return absl::UnavailableError(
      absl::StrCat("NCCL cannot be opened (", opened.tried,
                   "): install libnccl2, or say in LD_LIBRARY_PATH where it is"));
}

absl::StatusOr<NcclApi> FillNcclApi(const FindSymbol& find) {
  NcclApi nccl;
  FunctionTable table(find);
#define COCONET_NEED(name) table.Need("nccl" #name, nccl.name);
  COCONET_NCCL_FUNCTIONS(COCONET_NEED)
#undef COCONET_NEED
  if (!table.missing().empty()) {
    return absl::UnavailableError(absl::StrCat("NCCL lacks ", table.missing(), ": want version ",
                                               VersionText(kLeastNccl), " or later"));
  }
  table.Take("ncclMemAlloc", nccl.MemAlloc);
  table.Take("ncclMemFree", nccl.MemFree);
  table.Take("ncclCommWindowRegister", nccl.CommWindowRegister);
  table.Take("ncclCommWindowDeregister", nccl.CommWindowDeregister);
  table.Take("ncclTeamLsa", nccl.TeamLsa);
  table.Take("ncclGetPeerDevicePointer", nccl.GetPeerDevicePointer);
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
