#ifndef COCONET_RUNTIME_CUDA_MEMORY_VIRTUAL_MEMORY_H_
#define COCONET_RUNTIME_CUDA_MEMORY_VIRTUAL_MEMORY_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/memory/allocation.h"

namespace coconet {

/// A handle of the driver's virtual memory management: of a GPU's memory, or of an object that
/// stands for the memory of several GPUs, each of which binds its own to it (multicast). Given back
/// with the last who holds it, what is bound before it. Memory is there as long as a process has it
/// mapped. Thread-safe.
class MemoryHandle {
 public:
  /// `exported`: how other processes get it; CU_MEM_HANDLE_TYPE_NONE: they do not. `bytes`:
  /// RoundedForMulticast.
  static absl::StatusOr<std::shared_ptr<MemoryHandle>> OfMemory(const Device& device, int64_t bytes,
                                                                CUmemAllocationHandleType exported);
  static absl::StatusOr<std::shared_ptr<MemoryHandle>> OfMulticast(
      const DriverApi& driver, int devices, int64_t bytes, CUmemAllocationHandleType exported);
  MemoryHandle(const DriverApi& driver, CUmemGenericAllocationHandle handle)
      : driver_(driver), handle_(handle) {}
  ~MemoryHandle();
  MemoryHandle(const MemoryHandle&) = delete;
  MemoryHandle& operator=(const MemoryHandle&) = delete;

  CUmemGenericAllocationHandle get() const { return handle_; }
  /// Binds all of `memory`, which is the device's, to this object. When all of its devices have
  /// been added: the driver waits for that.
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

/// How much memory holds `bytes` that multicast objects of so many devices are to reach: in units
/// that the driver recommends where these add an eighth at most, else in the least that it takes.
absl::StatusOr<int64_t> RoundedForMulticast(const Device& device, int devices, int64_t bytes,
                                            CUmemAllocationHandleType exported);

/// Addresses by which `device` alone reaches what the handle is of.
absl::StatusOr<std::shared_ptr<Allocation>> Map(std::shared_ptr<Device> device,
                                                std::shared_ptr<MemoryHandle> handle,
                                                int64_t bytes);

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_MEMORY_VIRTUAL_MEMORY_H_
