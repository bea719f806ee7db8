#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/driver_api.h"

namespace coconet {

/// The properties of a GPU that decide which kernels run there.
struct DeviceFacts {
  std::string name;
  std::string uuid;  // hexadecimal
  int major = 0, minor = 0;
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int shared_bytes_per_multiprocessor = 0;
  int shared_bytes_per_block = 0;  // the most, if a kernel asks for it
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  bool multicast = false;  // has multimem instructions on memory of several GPUs

  /// The architecture that NVRTC compiles for: its complete form, "sm_90a", if there is one; "simt"
  /// for a simulated GPU.
  std::string arch() const;
  bool simulated() const { return major == 0; }  // no GPU has this compute capability
  /// Whether the GPU copies in bulk, by the asynchronous proxy (jit/device/cuda/async_copies.h).
  bool copies_in_bulk() const { return major >= 9; }
  /// Whether the GPU multiplies by warp groups (jit/device/cuda/wgmma.h).
  bool has_warp_groups() const { return major == 9 || simulated(); }
};

/// Memory that one call of the driver has allocated.
struct MemoryBlock {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  int ordinal = 0;          // the CUDA device ordinal of its GPU
  bool managed = false;     // moves between the GPUs and the host
  bool exportable = false;  // by cuIpcGetMemHandle; peers cannot address other memory
};

/// Makes a context current for the thread that made this object and must destroy it; then restores
/// the previous one. Costs one call of the driver if the context is current already.
class InContext {
 public:
  static absl::StatusOr<InContext> Enter(const DriverApi& driver, CUcontext context);
  InContext(InContext&& other) noexcept : pushed_(std::exchange(other.pushed_, nullptr)) {}
  ~InContext();
  InContext& operator=(InContext&&) = delete;

 private:
  explicit InContext(const DriverApi* pushed) : pushed_(pushed) {}

  const DriverApi* pushed_;  // null: there is nothing to pop
};

/// A GPU and its primary context, which other code in the process may also use. Thread-safe.
class Device {
 public:
  /// Unavailable, saying what to do, if there is no such GPU.
  static absl::StatusOr<std::shared_ptr<Device>> Open(const DriverApi& driver, int ordinal);
  ~Device();

  const DriverApi& driver() const { return driver_; }
  const DeviceFacts& facts() const { return facts_; }
  int ordinal() const { return ordinal_; }
  CUdevice handle() const { return device_; }

  /// Makes this device current for the calling thread, whatever it has current, while the result
  /// lives.
  absl::StatusOr<InContext> Enter() const { return InContext::Enter(driver_, context_); }
  /// Frees device memory by calling `free`. The driver first waits for all kernels on the device,
  /// one of which may belong to another thread's rank and wait for the calling one; so after the
  /// first DeferFrees, FreeRetired calls `free`. `free` must not own this device. Thread-safe.
  void Retire(std::function<void()> free) const;
  void DeferFrees() const;
  /// Whether a `free` waits for FreeRetired. Thread-safe.
  bool HasRetired() const;
  /// Calls the deferred `free`s. Must be called only when all kernels on the device end without the
  /// calling rank: when all ranks have reached the same place of their programs, or know that the
  /// calling rank gives up.
  void FreeRetired() const;

  /// The block that has the byte at `address`, of any GPU. InvalidArgument if the driver knows
  /// none. Thread-safe.
  absl::StatusOr<MemoryBlock> BlockAround(const void* address) const;

  /// Lets kernels on this device address memory of `other`; Unimplemented if they cannot.
  absl::Status Reach(const Device& other) const;
  /// How this device reaches each other device that this process sees, by its UUID: "none", "plain"
  /// or, if the link has atomic operations as NVLink has, "atomic"; followed by ":" and the
  /// driver's rank of the link's performance if that is not 0.
  absl::StatusOr<std::map<std::string, std::string>> Links() const;

 private:
  Device(const DriverApi& driver, int ordinal, CUdevice device, CUcontext context,
         DeviceFacts facts)
      : driver_(driver),
        ordinal_(ordinal),
        device_(device),
        context_(context),
        facts_(std::move(facts)) {}

  const DriverApi& driver_;
  const int ordinal_;
  const CUdevice device_;
  const CUcontext context_;
  const DeviceFacts facts_;
  mutable std::mutex mutex_;
  mutable bool defers_ = false;
  mutable std::vector<std::function<void()>> retired_;
};

}  // namespace coconet
