#pragma once

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

/// Memory of a GPU, freed (Device::Retire) by its last owner.
class Allocation {
 public:
  /// Zero-filled. ResourceExhausted if the GPU has too little memory.
  static absl::StatusOr<std::shared_ptr<Allocation>> Make(std::shared_ptr<Device> device,
                                                          int64_t bytes);
  /// Maps memory that another process has exported, for `device`; unmapped by its last owner. Its
  /// address is that of the byte at `offset`.
  static absl::StatusOr<std::shared_ptr<Allocation>> Import(std::shared_ptr<Device> device,
                                                            const CUipcMemHandle& handle,
                                                            int64_t offset);
  /// Memory that the caller keeps alive.
  static std::shared_ptr<Allocation> Kept(std::shared_ptr<Device> device, void* address) {
    return std::make_shared<Allocation>(std::move(device), reinterpret_cast<CUdeviceptr>(address),
                                        [] {});
  }
  /// Memory from another source, which `free` frees; cannot be exported.
  Allocation(std::shared_ptr<Device> device, CUdeviceptr address, std::function<void()> free)
      : device_(std::move(device)), address_(address), free_(std::move(free)) {}
  ~Allocation() { device_->Retire(std::move(free_)); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  void* address() const { return reinterpret_cast<void*>(address_); }
  const Device& device() const { return *device_; }
  /// A handle for processes of this machine, which must unmap the memory before it is freed.
  absl::StatusOr<CUipcMemHandle> Export() const;
  /// Fills the first `bytes` bytes with zeros. This device must be current.
  absl::Status Clear(size_t bytes) const;

 private:
  std::shared_ptr<Device> device_;
  CUdeviceptr address_;
  std::function<void()> free_;
};

/// Host memory that kernels can address, too, at the same address; zero-filled.
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

/// A GPU's memory as FarSpace.
class CudaSpace final : public FarSpace {
 public:
  explicit CudaSpace(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  int gpu() const override { return device_->ordinal(); }
  absl::Status Copy(const void* from, int64_t bytes, void* to) const override;

 private:
  std::shared_ptr<Device> device_;
};

/// Tells the driver the name of a buffer in memory of the current device. Once a buffer of an
/// allocation is named, kernels may use only named bytes of that allocation.
using NamesBuffer = void (*)(const void* address, size_t bytes, absl::string_view name);

/// A rank's memory on a GPU.
class CudaMemory final : public Memory {
 public:
  /// `allocations`: by rank; null for ranks that share no memory with this one. `multicast`: its
  /// multicast address, or null.
  CudaMemory(int rank, int64_t bytes, bool symmetric,
             std::vector<std::shared_ptr<Allocation>> allocations,
             std::shared_ptr<const FarSpace> space,
             std::shared_ptr<Allocation> multicast = nullptr);

 private:
  std::vector<std::shared_ptr<Allocation>> allocations_;
  std::shared_ptr<Allocation> multicast_;
};

/// A rank's words on a GPU (Rank::AllocateWords).
class CudaWords final : public Memory {
 public:
  CudaWords(int rank, int ranks, int64_t bytes, std::shared_ptr<PinnedMemory> memory);

 private:
  std::shared_ptr<PinnedMemory> memory_;
};

/// Copies between GPU and host memory, in any direction; returns when done. `device`
/// must be current.
absl::Status Copy(const Device& device, CUstream stream, const void* from, int64_t bytes, void* to);

/// Memory that this process, which is one rank, has dropped, and that its peers may still use. It
/// is released when all ranks have reached the next call of Share, of this world or of the
/// process's next one; by then peers have dropped it. Only the process's rank thread may call this.
inline std::vector<std::shared_ptr<void>>& Retained() {
  static auto* retained = new std::vector<std::shared_ptr<void>>;
  return *retained;
}

/// Drops retained memory, and memory that is retained in consequence.
inline void ReleaseRetained() {
  while (!Retained().empty()) std::exchange(Retained(), {}).clear();
}

/// The same object; retained when its last owner in this process drops it.
template <class T>
std::shared_ptr<T> RetainedLater(std::shared_ptr<T> used) {
  T* address = used.get();
  return std::shared_ptr<T>(address, [used = std::move(used)](T*) { Retained().push_back(used); });
}

}  // namespace coconet
