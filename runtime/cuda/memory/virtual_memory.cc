#include "runtime/cuda/memory/virtual_memory.h"

#include <algorithm>

#include "coconet/base/status.h"

namespace coconet {
namespace {

CUmemAllocationProp PropertiesOf(const Device& device, CUmemAllocationHandleType exported) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.handle()};
  properties.requestedHandleTypes = exported;
  return properties;
}

CUmulticastObjectProp PropertiesOfMulticast(int devices, int64_t bytes,
                                            CUmemAllocationHandleType exported) {
  CUmulticastObjectProp properties{};
  properties.numDevices = static_cast<unsigned>(devices);
  properties.size = static_cast<size_t>(bytes);
  properties.handleTypes = exported;
  return properties;
}

constexpr size_t kMostAlignment = size_t{512} << 20;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

absl::StatusOr<std::shared_ptr<MemoryHandle>> MemoryHandle::OfMemory(
    const Device& device, int64_t bytes, CUmemAllocationHandleType exported) {
  const CUmemAllocationProp properties = PropertiesOf(device, exported);
  CUmemGenericAllocationHandle handle = 0;
  CUresult result = device.driver().MemCreate(&handle, static_cast<size_t>(bytes), &properties, 0);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    device.FreeRetired();  // early: may wait for a peer's kernel until that one gives up
    result = device.driver().MemCreate(&handle, static_cast<size_t>(bytes), &properties, 0);
  }
  RETURN_IF_ERROR(ToStatus(device.driver(), result, "cuMemCreate"));
  return std::make_shared<MemoryHandle>(device.driver(), handle);
}

absl::StatusOr<std::shared_ptr<MemoryHandle>> MemoryHandle::OfMulticast(
    const DriverApi& driver, int devices, int64_t bytes, CUmemAllocationHandleType exported) {
  const CUmulticastObjectProp properties = PropertiesOfMulticast(devices, bytes, exported);
  CUmemGenericAllocationHandle handle = 0;
  RETURN_IF_CU(driver, MulticastCreate, &handle, &properties);
  return std::make_shared<MemoryHandle>(driver, handle);
}

MemoryHandle::~MemoryHandle() {
  for (const Bound& bound : bound_) driver_.MulticastUnbind(handle_, bound.device, 0, bound.bytes);
  driver_.MemRelease(handle_);
}

absl::Status MemoryHandle::Bind(const Device& device, std::shared_ptr<MemoryHandle> memory,
                                int64_t bytes) {
  RETURN_IF_CU(driver_, MulticastBindMem, handle_, 0, memory->get(), 0, static_cast<size_t>(bytes),
               0);
  const std::lock_guard<std::mutex> lock(mutex_);
  bound_.push_back({device.handle(), std::move(memory), static_cast<size_t>(bytes)});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> RoundedForMulticast(const Device& device, int devices, int64_t bytes,
                                            CUmemAllocationHandleType exported) {
  const DriverApi& driver = device.driver();
  const CUmemAllocationProp of_memory = PropertiesOf(device, exported);
  size_t memory = 0, least = 0, recommended = 0;
  RETURN_IF_CU(driver, MemGetAllocationGranularity, &memory, &of_memory,
               CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  // The size is provisional: the object's final size is computed here.
  const CUmulticastObjectProp of_object = PropertiesOfMulticast(
      devices, RoundUp(std::max<int64_t>(bytes, 1), static_cast<int64_t>(memory)), exported);
  RETURN_IF_CU(driver, MulticastGetGranularity, &least, &of_object,
               CU_MULTICAST_GRANULARITY_MINIMUM);
  RETURN_IF_CU(driver, MulticastGetGranularity, &recommended, &of_object,
               CU_MULTICAST_GRANULARITY_RECOMMENDED);
  // Granularities are powers of two, so the larger one is a multiple of both.
  const int64_t fits =
      RoundUp(std::max<int64_t>(bytes, 1), static_cast<int64_t>(std::max(memory, least)));
  const int64_t best = RoundUp(fits, static_cast<int64_t>(std::max(memory, recommended)));
  return best - fits <= fits / 8 ? best : fits;
}

absl::StatusOr<std::shared_ptr<Allocation>> Map(std::shared_ptr<Device> device,
                                                std::shared_ptr<MemoryHandle> handle,
                                                int64_t bytes) {
  const DriverApi& driver = device->driver();
  const auto size = static_cast<size_t>(bytes);
  CUdeviceptr address = 0;
  // The largest power of two that divides the size is a multiple of the granularity.
  RETURN_IF_CU(driver, MemAddressReserve, &address, size, std::min(size & -size, kMostAlignment), 0,
               0);
  const CUresult mapped = driver.MemMap(address, size, 0, handle->get(), 0);
  if (mapped != CUDA_SUCCESS) driver.MemAddressFree(address, size);
  RETURN_IF_ERROR(ToStatus(driver, mapped, "cuMemMap"));
  // The mapping owns the handle, and releases it after unmapping.
  auto mapping = std::make_shared<Allocation>(device, address,
                                              [&driver, address, size, handle = std::move(handle)] {
                                                driver.MemUnmap(address, size);
                                                driver.MemAddressFree(address, size);
                                              });
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device->handle()},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  RETURN_IF_CU(driver, MemSetAccess, address, size, &access, 1);
  return mapping;
}

}  // namespace coconet
