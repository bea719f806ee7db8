#include "runtime/cuda/memory/gpu_sharing.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/control/thread_exchange.h"

namespace coconet {
namespace {

// A handle exports a whole block of the driver's; smaller memory would share a block.
constexpr int64_t kBlock = int64_t{2} << 20;

/// Where `address` is in its block, if peers can address that; Unimplemented if they cannot.
struct PlaceInBlock {
  void* block;
  int64_t offset;
};
absl::StatusOr<PlaceInBlock> FindInBlock(const Device& device, const void* address, int64_t bytes) {
  ASSIGN_OR_RETURN(const MemoryBlock block, device.BlockAround(address));
  const auto offset = static_cast<int64_t>(reinterpret_cast<CUdeviceptr>(address) - block.base);
  if (block.exportable && bytes <= static_cast<int64_t>(block.bytes) - offset)
    return PlaceInBlock{reinterpret_cast<void*>(block.base), offset};
  return absl::UnimplementedError(
      "peers reach it, but not in memory that is virtual (expandable segments), managed or of a "
      "pool (cudaMallocAsync); want memory of cudaMalloc");
}

}  // namespace

absl::Status ThreadGpuSharing::Reach(const std::shared_ptr<Device>& device) {
  const absl::StatusOr<std::shared_ptr<Device>> mine = device;
  ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Device>> devices,
                   HandAround(exchange_, group_, mine));
  absl::Status reached;
  for (const std::shared_ptr<Device>& theirs : devices) {
    if (theirs != nullptr) reached.Update(device->Reach(*theirs));
  }
  return exchange_.Agree(reached);
}

absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> ThreadGpuSharing::Share(
    const std::shared_ptr<Device>& device, int64_t bytes) {
  return HandAround(exchange_, group_, Allocation::Make(device, bytes));
}

absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> ThreadGpuSharing::Register(
    const std::shared_ptr<Device>& device, void* address, int64_t bytes) {
  const absl::StatusOr<PlaceInBlock> place = FindInBlock(*device, address, bytes);
  if (!place.ok()) return HandAround<Allocation>(exchange_, group_, place.status());
  return HandAround<Allocation>(exchange_, group_, Allocation::Kept(device, address));
}

absl::Status ProcessGpuSharing::Reach(const std::shared_ptr<Device>& device) {
  return Share(device, 1).status();
}

absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> ProcessGpuSharing::Share(
    const std::shared_ptr<Device>& device, int64_t bytes) {
  ReleaseRetained();
  const absl::StatusOr<std::shared_ptr<Allocation>> own =
      Allocation::Make(device, bytes < 0 ? bytes : (bytes / kBlock + 1) * kBlock);
  if (!own.ok()) return Pass(device, own.status(), nullptr);
  return Pass(device, OfferOf(**own, 0), RetainedLater(*own));
}

absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> ProcessGpuSharing::Register(
    const std::shared_ptr<Device>& device, void* address, int64_t bytes) {
  const absl::StatusOr<PlaceInBlock> place = FindInBlock(*device, address, bytes);
  if (!place.ok()) return Pass(device, place.status(), nullptr);
  return Pass(device, OfferOf(*Allocation::Kept(device, place->block), place->offset),
              Allocation::Kept(device, address));
}

absl::StatusOr<ProcessGpuSharing::Offer> ProcessGpuSharing::OfferOf(const Allocation& block,
                                                                    int64_t offset) {
  ASSIGN_OR_RETURN(const CUipcMemHandle handle, block.Export());
  return Offer{handle, offset};
}

absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> ProcessGpuSharing::Pass(
    const std::shared_ptr<Device>& device, const absl::StatusOr<Offer>& offer,
    std::shared_ptr<Allocation> own) {
  RETURN_IF_ERROR(exchange_.Agree(offer.status()));
  ASSIGN_OR_RETURN(const std::vector<std::string> offers,
                   exchange_.AllGather({reinterpret_cast<const char*>(&*offer), sizeof *offer}));
  std::vector<std::shared_ptr<Allocation>> all(offers.size());
  all[rank_] = std::move(own);
  absl::Status opened;
  for (int i = 0; i < group_.size && opened.ok(); ++i) {
    const int peer = group_.Rank(i);
    if (peer == rank_) continue;
    Offer theirs;
    CC_CHECK(offers[peer].size() == sizeof theirs);
    std::memcpy(&theirs, offers[peer].data(), sizeof theirs);
    absl::StatusOr<std::shared_ptr<Allocation>> allocation =
        Allocation::Import(device, theirs.handle, theirs.offset);
    opened = WithContext(allocation.status(), absl::StrCat("the memory of rank ", peer,
                                                           ", another process, on its GPU"));
    if (opened.ok()) all[peer] = *std::move(allocation);
  }
  RETURN_IF_ERROR(exchange_.Agree(opened));
  return all;
}

void WindowGpuSharing::Close() {
  for (const std::function<void()>& close : std::exchange(*unused_, {})) close();
}

absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> WindowGpuSharing::Share(
    const std::shared_ptr<Device>& device, int64_t bytes) {
  Close();
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("Allocate: ", bytes, " bytes"));
  ASSIGN_OR_RETURN(MemoryWindow window, windows_->Open(std::max<int64_t>(bytes, 1)));
  // All addresses are valid while one of them is owned.
  const std::shared_ptr<void> open(nullptr, [unused = unused_, close = std::move(window.close)](
                                                void*) { unused->push_back(close); });
  std::vector<std::shared_ptr<Allocation>> all;
  for (void* address : window.addresses) {
    all.push_back(address == nullptr
                      ? nullptr
                      : std::make_shared<Allocation>(device, reinterpret_cast<CUdeviceptr>(address),
                                                     [open] {}));
  }
  RETURN_IF_ERROR(exchange_.Agree(all[rank_]->Clear(static_cast<size_t>(bytes))));
  return all;
}

}  // namespace coconet
