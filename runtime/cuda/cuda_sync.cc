#include "runtime/cuda/cuda_sync.h"

#include "coconet/base/status.h"

namespace coconet {

absl::StatusOr<char*> GrowingMemory::AtLeast(const std::shared_ptr<Device>& device, int64_t bytes) {
  if (bytes > bytes_) {
    memory_ = nullptr;
    bytes_ = 0;
    ASSIGN_OR_RETURN(memory_, Allocation::Make(device, bytes));
    bytes_ = bytes;
  }
  return bytes == 0 ? nullptr : static_cast<char*>(memory_->address());
}

absl::Status CudaSync::Refresh(const Device& device, CUstream stream, int rank) const {
  signs[rank]->Clear();
  const auto clear = [&](const Memory& memory, int64_t bytes) -> absl::Status {
    if (bytes == 0) return absl::OkStatus();
    RETURN_IF_CU(device.driver(), MemsetD8Async, reinterpret_cast<CUdeviceptr>(memory.own()), 0,
                 static_cast<size_t>(bytes), stream);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(clear(*shared, layout.shared_bytes));
  return clear(*local, layout.local_bytes);
}

}  // namespace coconet
