#ifndef COCONET_RUNTIME_CUDA_ALLOCATION_H_
#define COCONET_RUNTIME_CUDA_ALLOCATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/device.h"
#include "runtime/rank.h"

namespace coconet {

/// Memory of a GPU, zero-filled; freed with the last who holds it.
class Allocation {
 public:
  /// ResourceExhausted where the GPU has no such room.
  static absl::StatusOr<std::shared_ptr<Allocation>> Make(std::shared_ptr<Device> device, int64_t bytes);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  void* address() const { return reinterpret_cast<void*>(address_); }
  const Device& device() const { return *device_; }

 private:
  Allocation(std::shared_ptr<Device> device, CUdeviceptr address) : device_(std::move(device)), address_(address) {}

  std::shared_ptr<Device> device_;
  CUdeviceptr address_;
};

/// A word of the host's that kernels reach too, at the same address; 0 at first.
class PinnedWord {
 public:
  static absl::StatusOr<std::shared_ptr<PinnedWord>> Make(std::shared_ptr<Device> device);
  ~PinnedWord();
  PinnedWord(const PinnedWord&) = delete;
  PinnedWord& operator=(const PinnedWord&) = delete;

  unsigned* address() const { return address_; }
  unsigned Load() const { return __atomic_load_n(address_, __ATOMIC_ACQUIRE); }
  /// Does nothing where it is set already.
  void Set(unsigned value);

 private:
  PinnedWord(std::shared_ptr<Device> device, unsigned* address) : device_(std::move(device)), address_(address) {}

  std::shared_ptr<Device> device_;
  unsigned* address_;
};

/// A GPU's memory, as the host copies to and from it.
class CudaSpace final : public FarSpace {
 public:
  explicit CudaSpace(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  absl::Status Copy(const void* from, int64_t bytes, void* to) const override;

 private:
  std::shared_ptr<Device> device_;
};

/// Memory of a rank on a GPU.
class CudaMemory final : public Memory {
 public:
  /// `allocations`: by rank; null for ranks whose memory this one does not see.
  CudaMemory(int rank, int64_t bytes, bool symmetric, std::vector<std::shared_ptr<Allocation>> allocations,
             std::shared_ptr<const FarSpace> space);

 private:
  std::vector<std::shared_ptr<Allocation>> allocations_;
};

/// Between memories of GPUs and the host, whichever; returns when it is done. `device` is the calling thread's.
absl::Status Copy(const Device& device, CUstream stream, const void* from, int64_t bytes, void* to);

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_ALLOCATION_H_
