#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/cuda/cuda_executor.h"
#include "runtime/rank.h"

namespace coconet {

/// A rank's share of its GPU.
struct GpuShare {
  int ranks = 1;            // that share this GPU
  int multiprocessors = 0;  // reserved for this rank's kernels; 0: the ranks share all
};

/// The device must be current. Fills in `parts.calls`, `parts.params`, `parts.tables` and
/// `parts.workspaces` from the other parts. NotFound for a kernel that `module` lacks.
/// ResourceExhausted if the blocks of a waiting step, over all ranks on the same multiprocessors,
/// cannot all be resident at once or leave no room for matrix products. `library` is called only if
/// there are products.
absl::Status ResolveOnDevice(const Module& module, absl::Span<Memory* const> buffers,
                             const GpuShare& share, const CudaGemm::OpensLibrary& library,
                             CudaExecutor::Parts& parts);

}  // namespace coconet
