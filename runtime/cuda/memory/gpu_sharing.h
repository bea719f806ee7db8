#pragma once

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

/// How ranks address the memory of each other's GPUs; worlds of threads and of processes differ.
class GpuSharing {
 public:
  virtual ~GpuSharing() = default;
  /// Collective. OK if the ranks that share memory can address each other's; Unimplemented if their
  /// GPUs cannot.
  virtual absl::Status Reach(const std::shared_ptr<Device>& device) = 0;
  /// Collective; `device` must be current. Requires an earlier collective call in the world and the
  /// same `bytes` on all ranks. Allocates memory on `device`. Returns by world rank this rank's
  /// memory and that of the ranks that share memory with it, mapped for `device`; null for the
  /// others.
  virtual absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Share(
      const std::shared_ptr<Device>& device, int64_t bytes) = 0;
  /// Collective; `device` must be current. Like Share for memory on `device` that the caller keeps,
  /// `bytes` at `address`; the sizes may differ between ranks. Unimplemented, on all ranks, if
  /// peers cannot address the memory of one rank.
  virtual absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Register(
      const std::shared_ptr<Device>& device, void* address, int64_t bytes) = 0;
};

/// Shares memory between threads of one process by passing addresses, which are valid on all GPUs.
class ThreadGpuSharing final : public GpuSharing {
 public:
  ThreadGpuSharing(Exchange& exchange, const Members& group) : exchange_(exchange), group_(group) {}
  absl::Status Reach(const std::shared_ptr<Device>& device) override;
  absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Share(
      const std::shared_ptr<Device>& device, int64_t bytes) override;
  absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Register(
      const std::shared_ptr<Device>& device, void* address, int64_t bytes) override;

 private:
  Exchange& exchange_;
  Members group_;
};

/// Shares memory between processes of one machine, by the driver's handles; also if ranks share a
/// GPU. A rank's own memory is freed when all peers have unmapped it: at the next call of Share, of
/// this world or of the process's next one. Peers unmap registered memory when they drop it; the
/// caller frees it after that.
class ProcessGpuSharing final : public GpuSharing {
 public:
  ProcessGpuSharing(Exchange& exchange, int rank, const Members& group)
      : exchange_(exchange), rank_(rank), group_(group) {}
  absl::Status Reach(const std::shared_ptr<Device>& device) override;
  absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Share(
      const std::shared_ptr<Device>& device, int64_t bytes) override;
  absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Register(
      const std::shared_ptr<Device>& device, void* address, int64_t bytes) override;

 private:
  /// What peers need to map memory: a handle of its block, and where it begins there.
  struct Offer {
    CUipcMemHandle handle;
    int64_t offset;
  };
  static absl::StatusOr<Offer> OfferOf(const Allocation& block, int64_t offset);
  /// Collective. Passes the offers of all ranks; `own` is this rank's memory.
  absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Pass(
      const std::shared_ptr<Device>& device, const absl::StatusOr<Offer>& offer,
      std::shared_ptr<Allocation> own);

  Exchange& exchange_;
  int rank_;
  Members group_;
};

/// Shares memory between processes with a GPU each, by the memory windows of a library.
class WindowGpuSharing final : public GpuSharing {
 public:
  WindowGpuSharing(Exchange& exchange, int rank, std::unique_ptr<MemoryWindows> windows)
      : exchange_(exchange), rank_(rank), windows_(std::move(windows)) {}
  ~WindowGpuSharing() override { Close(); }
  absl::Status Reach(const std::shared_ptr<Device>& device) override {
    return Share(device, 1).status();
  }
  absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Share(
      const std::shared_ptr<Device>& device, int64_t bytes) override;
  absl::StatusOr<std::vector<std::shared_ptr<Allocation>>> Register(
      const std::shared_ptr<Device>& /*device*/, void* /*address*/, int64_t /*bytes*/) override {
    return absl::UnimplementedError(
        "peers reach it by windows of a library, which has its own memory");
  }

 private:
  using Closing = std::vector<std::function<void()>>;
  void Close();

  Exchange& exchange_;
  int rank_;
  std::unique_ptr<MemoryWindows> windows_;
  /// Windows without users in this process; peers may use them until all have reached the next call
  /// of Share.
  std::shared_ptr<Closing> unused_ = std::make_shared<Closing>();
};

}  // namespace coconet
