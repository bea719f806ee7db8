#include "runtime/nccl/nccl_windows.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Window sizes are multiples of it (NCCL_WIN_REQUIRED_ALIGNMENT).
constexpr int64_t kUnit = 4096;

/// The version whose window layout is the one below: the layout is internal to NCCL and changes.
constexpr int kKnownLayout = 22809;
/// The first fields of ncclWindow_vidmem, which is in GPU memory.
struct WindowLayout {
  void* host;
  char* base;  // address of the first rank's memory
  int rank;    // this rank's index among those with direct load and store
  int comm_rank;
  uint32_t stride;  // between consecutive ranks' memory, in units of 4 GiB
};
static_assert(offsetof(WindowLayout, base) == 8 && offsetof(WindowLayout, stride) == 24);

bool Never() { return false; }

/// NCCL does not say which CUDA error occurred; in an allocation it is taken for out of memory.
absl::Status StatusOfAllocation(const NcclApi& nccl, ncclResult_t result) {
  const absl::Status status = ToStatus(nccl, result, "ncclMemAlloc");
  return result == ncclUnhandledCudaError ? absl::ResourceExhaustedError(status.message()) : status;
}

absl::Status CheckVersion(const NcclApi& nccl) {
  const bool has = nccl.MemAlloc != nullptr && nccl.MemFree != nullptr &&
                   nccl.CommWindowRegister != nullptr && nccl.CommWindowDeregister != nullptr;
  if (has && (nccl.GetPeerDevicePointer != nullptr ||
              (nccl.TeamLsa != nullptr && nccl.version_code == kKnownLayout)))
    return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "NCCL ", nccl.version, " does not say where its windows are: want 2.28.9, or 2.29 or later"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryWindows>> OpenNcclWindows(const NcclApi& nccl,
                                                               const StreamLibraryTerms& terms) {
  RETURN_IF_ERROR(terms.exchange.Agree(CheckVersion(nccl)));
  const Members group = SharingMemory(terms.mesh, terms.rank);
  // Half of the time, because a rank that fails then waits for the others in the exchange, which
  // also has a deadline.
  StreamLibraryTerms of_link = terms;
  of_link.timeout_s = terms.timeout_s / 2;
  ASSIGN_OR_RETURN(const NcclOpening opening, OpenNcclLinks(nccl, of_link, {group}, 1));
  if (!opening.note.empty()) return absl::UnavailableError(opening.note);
  return std::make_unique<NcclWindows>(nccl, terms, group, opening.links[0]);
}

absl::StatusOr<MemoryWindow> NcclWindows::Open(int64_t bytes) {
  const int64_t rounded = (bytes + kUnit - 1) / kUnit * kUnit;
  const auto part = parts_.emplace(parts_.end());
  const auto agreed = [&](const absl::Status& mine) {
    const absl::Status status = exchange_.Agree(CauseOf(driver_, mine));
    if (!status.ok()) Close(part);
    return status;
  };
  RETURN_IF_ERROR(agreed(
      StatusOfAllocation(nccl_, nccl_.MemAlloc(&part->memory, static_cast<size_t>(rounded)))));
  RETURN_IF_ERROR(agreed(Register(*part, rounded)));
  absl::StatusOr<std::vector<void*>> addresses = AddressesOf(*part);
  RETURN_IF_ERROR(agreed(addresses.status()));
  return MemoryWindow{*std::move(addresses), [this, part] { Close(part); }};
}

absl::Status NcclWindows::Register(Part& part, int64_t bytes) {
  constexpr char kCall[] = "ncclCommWindowRegister";
  if (link_->comm() == nullptr)
    return absl::UnavailableError(absl::StrCat(kCall, ": its communicator was given up"));
  const ncclResult_t begun = nccl_.CommWindowRegister(
      link_->comm(), part.memory, static_cast<size_t>(bytes), &part.window, kSymmetricWindow);
  absl::Status status = ToStatusOfBegun(nccl_, begun, kCall);
  if (status.ok()) status = link_->Settle(kCall, Never);
  if (status.ok() && part.window == nullptr) {
    status = absl::UnavailableError(absl::StrCat(
        kCall, ": NCCL shares no memory between these GPUs (NCCL_DEBUG=INFO says why)"));
  }
  if (status.ok()) return status;
  // Peers may be waiting for this rank inside the call; aborting ends their waits.
  link_->Abort();
  return absl::IsDeadlineExceeded(status) ? absl::UnavailableError(status.message()) : status;
}

absl::StatusOr<std::vector<void*>> NcclWindows::AddressesOf(const Part& part) const {
  std::vector<void*> addresses(ranks_);
  for (int i = 0; i < group_.size; ++i) {
    const int peer = group_.Rank(i);
    if (peer == rank_) {
      addresses[peer] = part.memory;
      continue;
    }
    ASSIGN_OR_RETURN(addresses[peer], AddressOf(part, i));
    if (addresses[peer] == nullptr)
      return absl::UnavailableError(
          absl::StrCat("NCCL: this rank does not load and store the memory of rank ", peer));
  }
  return addresses;
}

absl::StatusOr<void*> NcclWindows::AddressOf(const Part& part, int peer) const {
  if (nccl_.GetPeerDevicePointer != nullptr) {
    void* address = nullptr;
    RETURN_IF_ERROR(ToStatus(nccl_, nccl_.GetPeerDevicePointer(part.window, 0, peer, &address),
                             "ncclGetPeerDevicePointer"));
    return address;
  }
  WindowLayout window{};
  RETURN_IF_CU(driver_, MemcpyAsync, reinterpret_cast<CUdeviceptr>(&window),
               reinterpret_cast<CUdeviceptr>(part.window), sizeof window, CU_STREAM_PER_THREAD);
  RETURN_IF_CU(driver_, StreamSynchronize, CU_STREAM_PER_THREAD);
  const NcclTeam team = nccl_.TeamLsa(link_->comm());
  const bool plausible = window.base != nullptr && window.stride > 0 &&
                         window.comm_rank == link_->index() && window.rank == team.rank &&
                         team.stride == 1;
  if (!plausible)
    return absl::InternalError(
        absl::StrCat("NCCL ", nccl_.version, ": a window is not laid out as that version has it"));
  const int place = window.rank + peer - window.comm_rank;
  if (place < 0 || place >= team.ranks) return nullptr;
  return static_cast<void*>(window.base + (static_cast<size_t>(place) * window.stride << 32));
}

void NcclWindows::Close(std::list<Part>::iterator part) {
  const bool given_up = link_->comm() == nullptr;  // then its windows are gone, too
  if (!given_up && part->window != nullptr) nccl_.CommWindowDeregister(link_->comm(), part->window);
  if (part->memory != nullptr) nccl_.MemFree(part->memory);
  if (given_up) {
    part->memory = nullptr;
  } else {
    parts_.erase(part);
  }
}

}  // namespace coconet
