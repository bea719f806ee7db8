#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/device.h"

namespace coconet {

/// Multiprocessors of a GPU that are reserved for this context's streams. Memory, kernels and
/// events belong to the GPU's primary context, which calls make current. Not thread-safe.
class GreenContext {
 public:
  /// Splits the GPU into `parts` equal parts, as large as possible in whole groups (clusters of
  /// blocks need these); some multiprocessors are left over. Unimplemented if the driver is too
  /// old, ResourceExhausted if the GPU has too few groups.
  static absl::StatusOr<std::vector<std::shared_ptr<const GreenContext>>> Split(
      const std::shared_ptr<Device>& device, int parts);
  ~GreenContext() { device_->driver().GreenCtxDestroy(context_); }
  GreenContext(const GreenContext&) = delete;
  GreenContext& operator=(const GreenContext&) = delete;

  int multiprocessors() const { return multiprocessors_; }
  /// The stream must be destroyed before this context.
  absl::StatusOr<CUstream> MakeStream(int priority) const;

 private:
  GreenContext(std::shared_ptr<Device> device, CUgreenCtx context, int multiprocessors)
      : device_(std::move(device)), context_(context), multiprocessors_(multiprocessors) {}

  std::shared_ptr<Device> device_;
  CUgreenCtx context_;
  int multiprocessors_;
};

/// A rank's part of a GPU that several ranks share.
struct GpuPart {
  std::shared_ptr<const GreenContext> own = nullptr;  // null: the ranks share all multiprocessors
  std::string why_none = {};                          // if null: the reason
};

/// The part of each of `ranks` ranks on `device`. `wanted`: reserve multiprocessors for each rank,
/// if possible.
std::vector<GpuPart> SplitAmong(const std::shared_ptr<Device>& device, int ranks, bool wanted);

}  // namespace coconet
