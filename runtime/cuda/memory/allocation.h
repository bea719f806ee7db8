#ifndef COCONET_RUNTIME_CUDA_MEMORY_ALLOCATION_H_
#define COCONET_RUNTIME_CUDA_MEMORY_ALLOCATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/rank.h"

namespace coconet {

/// Memory of a GPU, given back with the last who holds it (Device::Retire).
class Allocation {
 public:
  /// Zero-filled. ResourceExhausted where the GPU has no such room.
  static absl::StatusOr<std::shared_ptr<Allocation>> Make(std::shared_ptr<Device> device,
                                                          int64_t bytes);
  /// Another process's, which it exported, as `device` reaches it; given back with the last who
  /// holds it.
  static absl::StatusOr<std::shared_ptr<Allocation>> Import(std::shared_ptr<Device> device,
                                                            const CUipcMemHandle& handle);
  /// Memory that comes from elsewhere, which `free` gives back; not to be exported.
  Allocation(std::shared_ptr<Device> device, CUdeviceptr address, std::function<void()> free)
      : device_(std::move(device)), address_(address), free_(std::move(free)) {}
  ~Allocation() { device_->Retire(std::move(free_)); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  void* address() const { return reinterpret_cast<void*>(address_); }
  const Device& device() const { return *device_; }
  /// For processes of this machine; to be freed when they have given it back.
  absl::StatusOr<CUipcMemHandle> Export() const;
  /// Fills the first bytes with zeros. The calling thread's device is this one's.
  absl::Status Clear(size_t bytes) const;

 private:
  std::shared_ptr<Device> device_;
  CUdeviceptr address_;
  std::function<void()> free_;
};

/// Memory of the host's that kernels reach too, at the same address; zero-filled.
class PinnedMemory {
 public:
  static absl::StatusOr<std::shared_ptr<PinnedMemory>> Make(std::shared_ptr<Device> device,
                                                            int64_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  void* address() const { return address_; }

 private:
  PinnedMemory(std::shared_ptr<Device> device, void* address)
      : device_(std::move(device)), address_(address) {}

  std::shared_ptr<Device> device_;
  void* address_;
};

/// A GPU's memory, as the host copies to and from it.
class CudaSpace final : public FarSpace {
 public:
  explicit CudaSpace(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  absl::Status Copy(const void* from, int64_t bytes, void* to) const override;

 private:
  std::shared_ptr<Device> device_;
};

/// Tells a driver what those bytes of the calling thread's device are called. Of an allocation of
/// which some are, kernels use no others.
using NamesBuffer = void (*)(const void* address, size_t bytes, absl::string_view name);

/// Memory of a rank on a GPU.
class CudaMemory final : public Memory {
 public:
  /// `allocations`: by rank; null for ranks whose memory this one does not see. `multicast`: of all
  /// ranks of the node at once, or null.
  CudaMemory(int rank, int64_t bytes, bool symmetric,
             std::vector<std::shared_ptr<Allocation>> allocations,
             std::shared_ptr<const FarSpace> space,
             std::shared_ptr<Allocation> multicast = nullptr);

 private:
  std::vector<std::shared_ptr<Allocation>> allocations_;
  std::shared_ptr<Allocation> multicast_;
};

/// Words of a rank on a GPU (Rank::AllocateWords).
class CudaWords final : public Memory {
 public:
  CudaWords(int rank, int ranks, int64_t bytes, std::shared_ptr<PinnedMemory> memory);

 private:
  std::shared_ptr<PinnedMemory> memory_;
};

/// Between memories of GPUs and the host, whichever; returns when it is done. `device` is the
/// calling thread's.
absl::Status Copy(const Device& device, CUstream stream, const void* from, int64_t bytes, void* to);

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_MEMORY_ALLOCATION_H_
