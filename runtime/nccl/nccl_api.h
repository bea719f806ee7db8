#pragma once

#include <nccl.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "third_party/dynamic/open_library.h"

namespace coconet {

/// The oldest supported NCCL, 2.17: its communicators can be nonblocking and
/// limit their multiprocessors.
inline constexpr int kLeastNccl = 21700;
// clang-format off
#define COCONET_NCCL_FUNCTIONS(X) \
  X(GetVersion) X(GetErrorString) X(GetLastError) X(GetUniqueId) X(CommInitRankConfig) \
  X(CommGetAsyncError) X(CommFinalize) X(CommDestroy) X(CommAbort) X(AllReduce) X(ReduceScatter) \
  X(AllGather) X(Broadcast) X(Reduce) X(Send) X(Recv) X(GroupStart) X(GroupEnd)
// clang-format on

/// Windows: memory that NCCL shares between ranks, since 2.27; with a layout that this project
/// knows since 2.28. Declared here, so that a build with older headers can use a newer library.
using NcclWindow = struct OpaqueNcclWindow*;
inline constexpr int kSymmetricWindow = 1;  // NCCL_WIN_COLL_SYMMETRIC
struct NcclTeam {
  int ranks, rank, stride;
};

/// The functions of libnccl, by their names without "nccl". Opened at run time, so that one binary
/// runs on machines with and without NCCL. Tests fill it with fakes.
struct NcclApi {
#define COCONET_DECLARE(name) decltype(&::nccl##name) name = nullptr;
  COCONET_NCCL_FUNCTIONS(COCONET_DECLARE)
#undef COCONET_DECLARE
  // Null if NCCL is too old.
  ncclResult_t (*MemAlloc)(void** memory, size_t bytes) = nullptr;
  ncclResult_t (*MemFree)(void* memory) = nullptr;
  ncclResult_t (*CommWindowRegister)(ncclComm_t comm, void* memory, size_t bytes,
                                     NcclWindow* window, int flags) = nullptr;
  ncclResult_t (*CommWindowDeregister)(ncclComm_t comm, NcclWindow window) = nullptr;
  NcclTeam (*TeamLsa)(ncclComm_t comm) = nullptr;  // since 2.28: ranks with direct load and store
  ncclResult_t (*GetPeerDevicePointer)(NcclWindow window, size_t offset, int peer,
                                       void** pointer) = nullptr;  // since 2.29
  int version_code = 0;                                            // 22809
  std::string version;                                             // "2.28.9"
};

/// OK for ncclSuccess; else "call: <NCCL's text for the result> (number): <NCCL's last error>".
absl::Status ToStatus(const NcclApi& nccl, ncclResult_t result, absl::string_view call);

/// The same for a call on a nonblocking communicator: also OK while it is in progress.
absl::Status ToStatusOfBegun(const NcclApi& nccl, ncclResult_t result, absl::string_view call);

/// Opens libnccl on the first call; it stays open. Unavailable, saying what to do, if it is missing
/// or too old.
absl::StatusOr<const NcclApi*> OpenNccl();

/// An NcclApi from any source. Unavailable that names the missing functions, or the version if that
/// is too old.
absl::StatusOr<NcclApi> FillNcclApi(const FindSymbol& find);
/// Opens the first of these files that can be opened.
absl::StatusOr<FindSymbol> FindNcclIn(absl::Span<const std::string> files);

}  // namespace coconet
