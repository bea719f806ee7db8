#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/driver/stop_sign.h"
#include "runtime/cuda/memory/allocation.h"
#include "runtime/node/sync_pool.h"

namespace coconet {

/// Memory of a GPU that is allocated anew if more is needed. No kernel may use it then.
class GrowingMemory {
 public:
  /// Returns at least so many bytes, with unspecified content; null if `bytes` is 0.
  absl::StatusOr<char*> AtLeast(const std::shared_ptr<Device>& device, int64_t bytes);

 private:
  std::shared_ptr<Allocation> memory_;
  int64_t bytes_ = 0;
};

/// The synchronization memory of a rank on a GPU, and what else a bound plan needs there.
struct CudaSync final : SyncSet {
  std::shared_ptr<Allocation> control;
  /// By world rank; null for ranks that share no memory with this one.
  std::vector<std::unique_ptr<StopSign>> signs;
  unsigned* stop = nullptr;  // the word of this rank's sign, as kernels address it
  GrowingMemory tables;      // KernelStep::tensors of all steps
  /// Workspaces of matrix products, by lane, and the scratch memory for loading them.
  std::array<GrowingMemory, kLanes> workspaces;
  GrowingMemory scratch;

  /// Enqueues fills of the layout's bytes with zeros in `stream`, and resets the rank's stop word.
  absl::Status Refresh(const Device& device, CUstream stream, int rank) const;
};

}  // namespace coconet
