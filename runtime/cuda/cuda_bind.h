#ifndef COCONET_RUNTIME_CUDA_CUDA_BIND_H_
#define COCONET_RUNTIME_CUDA_CUDA_BIND_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/cuda/cuda_executor.h"
#include "runtime/node/plan_layout.h"
#include "runtime/rank.h"

namespace coconet {

/// What a rank has of its GPU.
struct GpuShare {
  int ranks = 1;            // that have this GPU
  int multiprocessors = 0;  // that run this rank's kernels alone; 0: all run those of all ranks
};

/// Fills in `parts.calls`, `parts.params`, `parts.tables` and `parts.workspaces` from the other
/// parts. NotFound for a kernel that `module` lacks; ResourceExhausted where the blocks of a step
/// that wait for each other, those of all ranks on the same multiprocessors, would not all run at
/// once, or would leave no room to matrix products. `library` is asked for only where there are
/// any.
absl::Status ResolveOnDevice(const Module& module, absl::Span<Memory* const> buffers,
                             const SyncLayout& layout, const GpuShare& share,
                             const CudaGemm::OpensLibrary& library, CudaExecutor::Parts& parts);

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_CUDA_BIND_H_
