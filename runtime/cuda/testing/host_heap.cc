#include "runtime/cuda/testing/host_heap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/cuda/testing/host_context.h"
#include "runtime/node/memory.h"

namespace coconet {
namespace {

struct Block {
  CUcontext context;  // null: imported from another process
  std::shared_ptr<Region> memory;
  int file;  // by which other processes can open it; -1: they cannot
};
struct Heap {
  std::mutex mutex;
  std::map<CUdeviceptr, Block> blocks;
};
Heap& TheHeap() {
  static auto* heap = new Heap;
  return *heap;
}

/// The contents of a handle: where other processes find the block.
struct Offer {
  int64_t pid, file, bytes;
};

/// Takes the file.
CUresult Keep(CUdeviceptr* address, CUcontext context, int64_t bytes, int file) {
  absl::StatusOr<std::shared_ptr<Region>> memory = Region::Map(bytes, file);
  if (!memory.ok()) {
    if (file >= 0) close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *address = reinterpret_cast<CUdeviceptr>((*memory)->base());
  Heap& heap = TheHeap();
  const std::lock_guard<std::mutex> lock(heap.mutex);
  heap.blocks[*address] = {context, *std::move(memory), file};
  return CUDA_SUCCESS;
}

int64_t InUse(CUcontext context) {
  Heap& heap = TheHeap();
  const std::lock_guard<std::mutex> lock(heap.mutex);
  int64_t bytes = 0;
  for (const auto& [address, block] : heap.blocks)
    bytes += block.context == context ? block.memory->bytes() : 0;
  return bytes;
}

}  // namespace

CUresult HostHeap::Allocate(CUdeviceptr* address, size_t size, CUcontext context, int64_t most) {
  const auto bytes = static_cast<int64_t>(size);
  if (bytes > most || Region::Rounded(bytes) > most - InUse(context))
    return CUDA_ERROR_OUT_OF_MEMORY;
  int file = -1;
  if (bytes >= kHugePage) {
    file = memfd_create("device memory", MFD_CLOEXEC);
    if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
    if (ftruncate(file, Region::Rounded(bytes)) != 0) return close(file), CUDA_ERROR_OUT_OF_MEMORY;
  }
  return Keep(address, context, bytes, file);
}

CUresult HostHeap::Find(CUdeviceptr address, HostBlock* block) {
  Heap& heap = TheHeap();
  const std::lock_guard<std::mutex> lock(heap.mutex);
  auto found = heap.blocks.upper_bound(address);
  if (found == heap.blocks.begin()) return CUDA_ERROR_INVALID_VALUE;
  const auto& [base, of] = *--found;
  const auto bytes = static_cast<size_t>(of.memory->bytes());
  if (address - base >= bytes) return CUDA_ERROR_INVALID_VALUE;
  *block = {base, bytes, of.context, of.file >= 0};
  return CUDA_SUCCESS;
}

CUresult HostHeap::Export(CUipcMemHandle* handle, CUdeviceptr address) {
  Heap& heap = TheHeap();
  const std::lock_guard<std::mutex> lock(heap.mutex);
  const auto found = heap.blocks.find(address);
  if (found == heap.blocks.end() || found->second.file < 0) return CUDA_ERROR_INVALID_VALUE;
  const Offer offer{getpid(), found->second.file, found->second.memory->bytes()};
  std::memcpy(handle->reserved, &offer, sizeof offer);
  return CUDA_SUCCESS;
}

CUresult HostHeap::Import(CUdeviceptr* address, const CUipcMemHandle& handle) {
  Offer offer;
  std::memcpy(&offer, handle.reserved, sizeof offer);
  if (offer.pid == getpid()) return CUDA_ERROR_INVALID_CONTEXT;  // as the real driver does
  const std::string path =
      "/proc/" + std::to_string(offer.pid) + "/fd/" + std::to_string(offer.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  return file < 0 ? CUDA_ERROR_MAP_FAILED : Keep(address, nullptr, offer.bytes, file);
}

CUresult HostHeap::Free(CUdeviceptr address) {
  Heap& heap = TheHeap();
  const std::lock_guard<std::mutex> lock(heap.mutex);
  const auto found = heap.blocks.find(address);
  if (found == heap.blocks.end()) return CUDA_ERROR_INVALID_VALUE;
  if (found->second.context != nullptr) NeedContext("cuMemFree", found->second.context);
  if (found->second.file >= 0) close(found->second.file);
  heap.blocks.erase(found);
  return CUDA_SUCCESS;
}

}  // namespace coconet
