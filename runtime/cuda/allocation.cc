#include "runtime/cuda/allocation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

std::vector<void*> AddressesOf(const std::vector<std::shared_ptr<Allocation>>& allocations) {
  std::vector<void*> addresses;
  for (const std::shared_ptr<Allocation>& of : allocations) addresses.push_back(of == nullptr ? nullptr : of->address());
  return addresses;
}

std::vector<void*> OnlyOf(int rank, int ranks, void* address) {
  std::vector<void*> addresses(ranks);
  addresses[rank] = address;
  return addresses;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Allocation>> Allocation::Make(std::shared_ptr<Device> device, int64_t bytes) {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("Allocate: ", bytes, " bytes"));
  RETURN_IF_ERROR(device->Use());
  const DriverApi& driver = device->driver();
  const size_t size = std::max<size_t>(static_cast<size_t>(bytes), 1);
  CUdeviceptr address = 0;
  const absl::Status made = ToStatus(driver, driver.MemAlloc(&address, size), "cuMemAlloc");
  if (!made.ok()) return absl::Status(made.code(), absl::StrCat("GPU ", device->ordinal(), ": ", bytes >> 20, " MiB: ", made.message()));
  std::shared_ptr<Allocation> allocation(new Allocation(std::move(device), address, /*imported=*/false));
  RETURN_IF_CU(driver, MemsetD8Async, address, 0, size, nullptr);
  RETURN_IF_CU(driver, StreamSynchronize, nullptr);
  return allocation;
}

absl::StatusOr<std::shared_ptr<Allocation>> Allocation::Import(std::shared_ptr<Device> device, const CUipcMemHandle& handle) {
  RETURN_IF_ERROR(device->Use());
  CUdeviceptr address = 0;
  RETURN_IF_CU(device->driver(), IpcOpenMemHandle, &address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  return std::shared_ptr<Allocation>(new Allocation(std::move(device), address, /*imported=*/true));
}

absl::StatusOr<CUipcMemHandle> Allocation::Export() const {
  RETURN_IF_ERROR(device_->Use());
  CUipcMemHandle handle;
  RETURN_IF_CU(device_->driver(), IpcGetMemHandle, &handle, address_);
  return handle;
}

Allocation::~Allocation() {
  if (!device_->Use().ok()) return;
  imported_ ? device_->driver().IpcCloseMemHandle(address_) : device_->driver().MemFree(address_);
}

absl::StatusOr<std::shared_ptr<PinnedMemory>> PinnedMemory::Make(std::shared_ptr<Device> device, int64_t bytes) {
  RETURN_IF_ERROR(device->Use());
  const DriverApi& driver = device->driver();
  const size_t size = std::max<size_t>(static_cast<size_t>(bytes), 1);
  void* address = nullptr;
  RETURN_IF_CU(driver, MemHostAlloc, &address, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  std::memset(address, 0, size);
  return std::shared_ptr<PinnedMemory>(new PinnedMemory(std::move(device), address));
}

PinnedMemory::~PinnedMemory() {
  if (device_->Use().ok()) device_->driver().MemFreeHost(address_);
}

CudaMemory::CudaMemory(int rank, int64_t bytes, bool symmetric, std::vector<std::shared_ptr<Allocation>> allocations,
                       std::shared_ptr<const FarSpace> space)
    : Memory(rank, bytes, symmetric, AddressesOf(allocations), std::move(space)), allocations_(std::move(allocations)) {}

CudaWords::CudaWords(int rank, int ranks, int64_t bytes, std::shared_ptr<PinnedMemory> memory)
    : Memory(rank, bytes, /*symmetric=*/false, OnlyOf(rank, ranks, memory->address())), memory_(std::move(memory)) {}

absl::Status CudaSpace::Copy(const void* from, int64_t bytes, void* to) const {
  RETURN_IF_ERROR(device_->Use());
  return coconet::Copy(*device_, nullptr, from, bytes, to);
}

absl::Status Copy(const Device& device, CUstream stream, const void* from, int64_t bytes, void* to) {
  if (bytes == 0) return absl::OkStatus();
  const DriverApi& driver = device.driver();
  RETURN_IF_CU(driver, MemcpyAsync, reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), static_cast<size_t>(bytes), stream);
  RETURN_IF_CU(driver, StreamSynchronize, stream);
  return absl::OkStatus();
}

}  // namespace coconet
