#ifndef COCONET_RUNTIME_CUDA_DRIVER_DEVICE_H_
#define COCONET_RUNTIME_CUDA_DRIVER_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/driver_api.h"

namespace coconet {

/// What a GPU is, and what of it decides which kernels run there.
struct DeviceFacts {
  std::string name;
  std::string uuid;  // hexadecimal
  int major = 0, minor = 0;
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int shared_bytes_per_multiprocessor = 0;
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  bool multicast = false;  // multimem instructions on memory of several GPUs

  /// The architecture that NVRTC compiles for: the complete form of it, "sm_90a", where there is
  /// one; "simt" for a simulated GPU.
  std::string arch() const;
  bool simulated() const { return major == 0; }  // no GPU has this compute capability
  /// By the asynchronous proxy (jit/device/cuda/async_copies.h).
  bool copies_in_bulk() const { return major >= 9; }
};

/// A GPU that this process uses, by its primary context, which others in the process may use too.
/// Thread-safe.
class Device {
 public:
  /// Unavailable, with what to do, where there is no such GPU.
  static absl::StatusOr<std::shared_ptr<Device>> Open(const DriverApi& driver, int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DriverApi& driver() const { return driver_; }
  const DeviceFacts& facts() const { return facts_; }
  int ordinal() const { return ordinal_; }
  CUdevice handle() const { return device_; }

  /// The calling thread's calls are of this device from now on.
  absl::Status Use() const;
  /// Gives memory of the device back. The driver waits for all that runs there before it does so,
  /// which may be a kernel of another thread's rank that waits for the calling one: so from the
  /// first DeferFrees on, it is done by FreeRetired. `free` is not to keep this device. Any thread.
  void Retire(std::function<void()> free) const;
  void DeferFrees() const;
  /// Where what runs on the device ends without the calling rank: when all ranks have come to one
  /// place of their programs, and when they have been told that the calling one gives up.
  void FreeRetired() const;

  /// Whether kernels on this device reach memory of the other one; switches that on. Unimplemented
  /// where they cannot.
  absl::Status Reach(const Device& other) const;

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

#endif  // COCONET_RUNTIME_CUDA_DRIVER_DEVICE_H_
