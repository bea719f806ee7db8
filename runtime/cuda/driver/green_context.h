#ifndef COCONET_RUNTIME_CUDA_DRIVER_GREEN_CONTEXT_H_
#define COCONET_RUNTIME_CUDA_DRIVER_GREEN_CONTEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/device.h"

namespace coconet {

/// Multiprocessors of a GPU that no other work runs on: what its streams do runs there alone.
/// Memory, kernels and events are those of the GPU's primary context, which stays the thread's. Of
/// one thread at a time.
class GreenContext {
 public:
  /// `parts` equal parts of the GPU, as large as can be in whole groups of multiprocessors that
  /// clusters of blocks need; some are left over. Unimplemented where the driver is too old,
  /// ResourceExhausted where the GPU has too few groups.
  static absl::StatusOr<std::vector<std::shared_ptr<const GreenContext>>> Split(
      const std::shared_ptr<Device>& device, int parts);
  ~GreenContext() { device_->driver().GreenCtxDestroy(context_); }
  GreenContext(const GreenContext&) = delete;
  GreenContext& operator=(const GreenContext&) = delete;

  int multiprocessors() const { return multiprocessors_; }
  /// To be destroyed before this.
  absl::StatusOr<CUstream> MakeStream(int priority) const;

 private:
  GreenContext(std::shared_ptr<Device> device, CUgreenCtx context, int multiprocessors)
      : device_(std::move(device)), context_(context), multiprocessors_(multiprocessors) {}

  std::shared_ptr<Device> device_;
  CUgreenCtx context_;
  int multiprocessors_;
};

/// What a rank has of a GPU that it shares.
struct GpuPart {
  std::shared_ptr<const GreenContext> own =
      nullptr;                // null: ranks that share the GPU share all its multiprocessors
  std::string why_none = {};  // then, in words
};

/// Of each of the `ranks` on a GPU. `wanted`: whether they are to have multiprocessors of their
/// own, where they can.
std::vector<GpuPart> SplitAmong(const std::shared_ptr<Device>& device, int ranks, bool wanted);

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_DRIVER_GREEN_CONTEXT_H_
