#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/memory/allocation.h"

namespace coconet {

/// A handle of the driver's virtual memory management: to a GPU's memory, or to a multicast object,
/// to which several GPUs bind their memory. The last owner releases it, after the memory bound to
/// it. Memory exists as long as a process maps it. Thread-safe.
class MemoryHandle {
 public:
  /// `exported`: how other processes import it; CU_MEM_HANDLE_TYPE_NONE: they do not. `bytes`: of
  /// RoundedForMulticast.
  static absl::StatusOr<std::shared_ptr<MemoryHandle>> OfMemory(const Device& device, int64_t bytes,
                                                                CUmemAllocationHandleType exported);
  static absl::StatusOr<std::shared_ptr<MemoryHandle>> OfMulticast(
      const DriverApi& driver, int devices, int64_t bytes, CUmemAllocationHandleType exported);
  MemoryHandle(const DriverApi& driver, CUmemGenericAllocationHandle handle)
      : driver_(driver), handle_(handle) {}
  ~MemoryHandle();

  CUmemGenericAllocationHandle get() const { return handle_; }
  /// Binds all of `memory`, which is on `device`, to this multicast object. All devices must have
  /// been added, else the driver waits for them.
  absl::Status Bind(const Device& device, std::shared_ptr<MemoryHandle> memory, int64_t bytes);

 private:
  struct Bound {
    CUdevice device;
    std::shared_ptr<MemoryHandle> memory;
    size_t bytes;
  };
  const DriverApi& driver_;
  CUmemGenericAllocationHandle handle_;
  std::mutex mutex_;
  std::vector<Bound> bound_;
};

/// The size of memory that holds `bytes` and can be bound to a multicast object of `devices` GPUs:
/// a multiple of the recommended granularity if that adds an eighth at most, else of the least.
absl::StatusOr<int64_t> RoundedForMulticast(const Device& device, int devices, int64_t bytes,
                                            CUmemAllocationHandleType exported);

/// Maps the handle's memory, for kernels of `device` only.
absl::StatusOr<std::shared_ptr<Allocation>> Map(std::shared_ptr<Device> device,
                                                std::shared_ptr<MemoryHandle> handle,
                                                int64_t bytes);

}  // namespace coconet
