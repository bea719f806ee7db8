#include "runtime/cuda/memory/allocation.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

std::vector<void*> AddressesOf(const std::vector<std::shared_ptr<Allocation>>& allocations) {
  std::vector<void*> addresses;
  for (const std::shared_ptr<Allocation>& of : allocations)
    addresses.push_back(of == nullptr ? nullptr : of->address());
  return addresses;
}

std::vector<void*> OnlyOf(int rank, int ranks, void* address) {
  std::vector<void*> addresses(ranks);
  addresses[rank] = address;
  return addresses;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Allocation>> Allocation::Make(std::shared_ptr<Device> device,
                                                             int64_t bytes) {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("Allocate: ", bytes, " bytes"));
  ASSIGN_OR_RETURN(const InContext in, device->Enter());
  const DriverApi& driver = device->driver();
  const size_t size = std::max<size_t>(static_cast<size_t>(bytes), 1);
  CUdeviceptr address = 0;
  CUresult result = driver.MemAlloc(&address, size);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    device->FreeRetired();  // early: may wait for a peer's kernel until that one gives up
    result = driver.MemAlloc(&address, size);
  }
  const absl::Status made = ToStatus(driver, result, "cuMemAlloc");
  if (!made.ok())
    return absl::Status(made.code(), absl::StrCat("GPU ", device->ordinal(), ": ", bytes >> 20,
                                                  " MiB: ", made.message()));
  auto allocation = std::make_shared<Allocation>(std::move(device), address,
                                                 [&driver, address] { driver.MemFree(address); });
  RETURN_IF_ERROR(allocation->Clear(size));
  return allocation;
}

absl::StatusOr<std::shared_ptr<Allocation>> Allocation::Import(std::shared_ptr<Device> device,
                                                               const CUipcMemHandle& handle,
                                                               int64_t offset) {
  ASSIGN_OR_RETURN(const InContext in, device->Enter());
  CUdeviceptr base = 0;
  RETURN_IF_CU(device->driver(), IpcOpenMemHandle, &base, handle,
               CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  const DriverApi& driver = device->driver();
  return std::make_shared<Allocation>(std::move(device), base + static_cast<CUdeviceptr>(offset),
                                      [&driver, base] { driver.IpcCloseMemHandle(base); });
}

absl::Status Allocation::Clear(size_t bytes) const {
  // CU_STREAM_PER_THREAD does not wait for callers' streams; the default stream would.
  RETURN_IF_CU(device_->driver(), MemsetD8Async, address_, 0, bytes, CU_STREAM_PER_THREAD);
  RETURN_IF_CU(device_->driver(), StreamSynchronize, CU_STREAM_PER_THREAD);
  return absl::OkStatus();
}

absl::StatusOr<CUipcMemHandle> Allocation::Export() const {
  ASSIGN_OR_RETURN(const InContext in, device_->Enter());
  CUipcMemHandle handle;
  RETURN_IF_CU(device_->driver(), IpcGetMemHandle, &handle, address_);
  return handle;
}

absl::StatusOr<std::shared_ptr<PinnedMemory>> PinnedMemory::Make(std::shared_ptr<Device> device,
                                                                 int64_t bytes) {
  ASSIGN_OR_RETURN(const InContext in, device->Enter());
  const DriverApi& driver = device->driver();
  const size_t size = std::max<size_t>(static_cast<size_t>(bytes), 1);
  void* address = nullptr;
  RETURN_IF_CU(driver, MemHostAlloc, &address, size,
               CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  std::memset(address, 0, size);
  return std::shared_ptr<PinnedMemory>(new PinnedMemory(std::move(device), address));
}

PinnedMemory::~PinnedMemory() {
  device_->Retire(
      [&driver = device_->driver(), address = address_] { driver.MemFreeHost(address); });
}

CudaMemory::CudaMemory(int rank, int64_t bytes, bool symmetric,
                       std::vector<std::shared_ptr<Allocation>> allocations,
                       std::shared_ptr<const FarSpace> space, std::shared_ptr<Allocation> multicast)
    : Memory(rank, bytes, symmetric, AddressesOf(allocations), std::move(space),
             multicast == nullptr ? nullptr : multicast->address()),
      allocations_(std::move(allocations)),
      multicast_(std::move(multicast)) {}

CudaWords::CudaWords(int rank, int ranks, int64_t bytes, std::shared_ptr<PinnedMemory> memory)
    : Memory(rank, bytes, /*symmetric=*/false, OnlyOf(rank, ranks, memory->address())),
      memory_(std::move(memory)) {}

absl::Status CudaSpace::Copy(const void* from, int64_t bytes, void* to) const {
  ASSIGN_OR_RETURN(const InContext in, device_->Enter());
  return coconet::Copy(*device_, nullptr, from, bytes, to);
}

absl::Status Copy(const Device& device, CUstream stream, const void* from, int64_t bytes,
                  void* to) {
  if (bytes == 0) return absl::OkStatus();
  const DriverApi& driver = device.driver();
  RETURN_IF_CU(driver, MemcpyAsync, reinterpret_cast<CUdeviceptr>(to),
               reinterpret_cast<CUdeviceptr>(from), static_cast<size_t>(bytes), stream);
  RETURN_IF_CU(driver, StreamSynchronize, stream);
  return absl::OkStatus();
}

}  // namespace coconet
