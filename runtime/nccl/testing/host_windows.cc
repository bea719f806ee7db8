#include "runtime/nccl/testing/host_windows.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/node/memory.h"

namespace coconet {
namespace {

constexpr size_t kStride = size_t{1} << 32;
constexpr size_t kMost = size_t{1} << 30;  // of one piece of memory

struct Window {
  // As in nccl_device.h of 2.28.9.
  void* host;
  char* base;
  int rank, comm_rank;
  uint32_t stride, multicast, network;

  size_t bytes;  // of addresses
};

struct Memories {
  std::mutex mutex;
  struct Block {
    int file;
    size_t bytes;
    std::shared_ptr<Region> region;
  };
  std::map<void*, Block> blocks;
  int windows = 0;
};
Memories& All() {
  static auto* all = new Memories;
  return *all;
}

std::string NameOf(const std::string& folder, int number, int rank) {
  return absl::StrCat(folder, "-window-", number, "-", rank);
}

}  // namespace

ncclResult_t AllocateHostMemory(void** memory, size_t bytes) {
  if (bytes > kMost) return ncclUnhandledCudaError;
  const int file = memfd_create("memory of NCCL", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, Region::Rounded(static_cast<int64_t>(bytes))) != 0)
    return ncclUnhandledCudaError;
  absl::StatusOr<std::shared_ptr<Region>> region =
      Region::Map(Region::Rounded(static_cast<int64_t>(bytes)), file);
  if (!region.ok()) return close(file), ncclUnhandledCudaError;
  *memory = (*region)->base();
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().blocks[*memory] = {file, bytes, *std::move(region)};
  return ncclSuccess;
}

ncclResult_t FreeHostMemory(void* memory) {
  const std::lock_guard<std::mutex> lock(All().mutex);
  const auto found = All().blocks.find(memory);
  if (found == All().blocks.end()) return ncclInvalidArgument;
  close(found->second.file);
  All().blocks.erase(found);
  return ncclSuccess;
}

bool OfferHostMemory(void* memory, size_t bytes, HostOffer& offer) {
  const std::lock_guard<std::mutex> lock(All().mutex);
  const auto found = All().blocks.find(memory);
  if (found == All().blocks.end() || found->second.bytes < bytes) return false;
  offer = {getpid(), found->second.file, static_cast<int64_t>(bytes)};
  return true;
}

void WriteOffer(const std::string& folder, int number, int rank, const HostOffer& offer) {
  const std::string name = NameOf(folder, number, rank),
                    unfinished = absl::StrCat(name, ".unfinished");
  std::ofstream(unfinished, std::ios::binary)
      .write(reinterpret_cast<const char*>(&offer), sizeof offer);
  rename(unfinished.c_str(), name.c_str());
}

std::vector<HostOffer> ReadOffers(const std::string& folder, int number, int ranks) {
  std::vector<HostOffer> offers;
  for (int rank = 0; rank < ranks; ++rank) {
    HostOffer offer{};
    std::ifstream file(NameOf(folder, number, rank), std::ios::binary);
    if (file.read(reinterpret_cast<char*>(&offer), sizeof offer)) offers.push_back(offer);
  }
  return offers;
}

NcclWindow OpenHostWindow(const std::vector<HostOffer>& offers, int rank) {
  const size_t bytes = offers.size() * kStride;
  void* const base =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  for (size_t i = 0; i < offers.size(); ++i) {
    const int file = open(absl::StrCat("/proc/", offers[i].pid, "/fd/", offers[i].file).c_str(),
                          O_RDWR | O_CLOEXEC);
    void* const at = static_cast<char*>(base) + i * kStride;
    const bool mapped =
        file >= 0 && mmap(at, static_cast<size_t>(offers[i].bytes), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED, file, 0) == at;
    if (file >= 0) close(file);
    if (mapped) continue;
    munmap(base, bytes);
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().windows += 1;
  return reinterpret_cast<NcclWindow>(
      new Window{nullptr, static_cast<char*>(base), rank, rank, kStride >> 32, 0, 0, bytes});
}

ncclResult_t CloseHostWindow(NcclWindow handle) {
  auto* window = reinterpret_cast<Window*>(handle);
  munmap(window->base, window->bytes);
  delete window;
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().windows -= 1;
  return ncclSuccess;
}

void* InHostWindow(NcclWindow handle, size_t offset, int peer) {
  return reinterpret_cast<Window*>(handle)->base + static_cast<size_t>(peer) * kStride + offset;
}

int HostWindowsLeft() {
  const std::lock_guard<std::mutex> lock(All().mutex);
  return All().windows + static_cast<int>(All().blocks.size());
}

}  // namespace coconet
