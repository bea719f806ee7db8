#ifndef COCONET_RUNTIME_CUDA_MEMORY_GPU_SHARING_H_
#define COCONET_RUNTIME_CUDA_MEMORY_GPU_SHARING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/driver/stream_library.h"
#include "runtime/cuda/memory/allocation.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"

namespace coconet {

/// How ranks reach the memory of each other's GPUs: what worlds of threads and of processes do
/// differently.
class GpuSharing {
 public:
  virtual ~GpuSharing() = default;
  /// Collective. Whether the ranks that share memory reach each other's; Unimplemented where their
  /// GPUs are known not to.
  virtual absl::Status Reach(const std::shared_ptr<Device>& device) = 0;
  /// Collective, after another call that was; the ranks agree on `bytes` already. By world rank:
  /// this rank's memory on `device`, and that of those who share memory with it, as it addresses
  /// them; null for the others.
  virtual absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Share(
      const std::shared_ptr<Device>& device, int64_t bytes) = 0;
};

/// Threads of one process hand their memory around: it has one address for all GPUs.
class ThreadGpuSharing final : public GpuSharing {
 public:
  ThreadGpuSharing(Exchange& exchange, const Members& group) : exchange_(exchange), group_(group) {}
  absl::Status Reach(const std::shared_ptr<Device>& device) override;
  absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Share(
      const std::shared_ptr<Device>& device, int64_t bytes) override;

 private:
  Exchange& exchange_;
  Members group_;
};

/// Processes of one machine open each other's memory by the driver's handles, also where several
/// have one GPU. A rank's own is freed when all have closed it: at the next call of Share, of this
/// world or the process's next, to which they all come after that.
class ProcessGpuSharing final : public GpuSharing {
 public:
  ProcessGpuSharing(Exchange& exchange, int rank, const Members& group)
      : exchange_(exchange), rank_(rank), group_(group) {}
  absl::Status Reach(const std::shared_ptr<Device>& device) override;
  absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Share(
      const std::shared_ptr<Device>& device, int64_t bytes) override;

 private:
  Exchange& exchange_;
  int rank_;
  Members group_;
};

/// Processes with a GPU each whose memory a library shares between them.
class WindowGpuSharing final : public GpuSharing {
 public:
  WindowGpuSharing(Exchange& exchange, int rank, std::unique_ptr<MemoryWindows> windows)
      : exchange_(exchange), rank_(rank), windows_(std::move(windows)) {}
  ~WindowGpuSharing() override { Close(); }
  WindowGpuSharing(const WindowGpuSharing&) = delete;
  WindowGpuSharing& operator=(const WindowGpuSharing&) = delete;
  absl::Status Reach(const std::shared_ptr<Device>& device) override {
    return Share(device, 1).status();
  }
  absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Share(
      const std::shared_ptr<Device>& device, int64_t bytes) override;

 private:
  using Closing = std::vector<std::function<void()>>;
  void Close();

  Exchange& exchange_;
  int rank_;
  std::unique_ptr<MemoryWindows> windows_;
  /// Windows that nobody here uses any more; peers may until all have come to the next call of
  /// Share.
  std::shared_ptr<Closing> unused_ = std::make_shared<Closing>();
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_MEMORY_GPU_SHARING_H_
