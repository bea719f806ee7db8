#ifndef COCONET_RUNTIME_CUDA_GEMM_CUDA_GEMM_H_
#define COCONET_RUNTIME_CUDA_GEMM_CUDA_GEMM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/gemm/cublaslt.h"
#include "runtime/node/gemm_problem.h"
#include "runtime/plan.h"

namespace coconet {

/// A GemmStep of one rank, with its addresses and everything it needs prepared.
class CudaGemm {
 public:
  using OpensLibrary = std::function<absl::StatusOr<std::shared_ptr<const CublasLt>>()>;
  /// Where the buffers of the three matrices begin.
  struct Buffers {
    const char* a;
    const char* b;
    char* c;
  };
  /// `rank`: in its stage. `multiprocessors`: that it is to be fast on; 0: all. `library` is asked
  /// for only where there is something to sum. OutOfRange where the library has fewer candidates
  /// than the step's. Requires CheckGemm.
  static absl::StatusOr<std::unique_ptr<CudaGemm>> Make(std::shared_ptr<Device> device,
                                                        const OpensLibrary& library,
                                                        const GemmStep& step, int rank,
                                                        int multiprocessors,
                                                        const Buffers& buffers);

  /// What Start needs at the address given to UseWorkspace: that of nobody who runs at the same
  /// time.
  int64_t workspace_bytes() const {
    return matmul_.has_value() ? static_cast<int64_t>(matmul_->way.workspaceSize) : 0;
  }
  void UseWorkspace(void* workspace) { workspace_ = workspace; }

  /// Bytes that Load needs; 0 where there is nothing to load.
  int64_t scratch_bytes() const;
  /// Gets the library's kernels onto the GPU, by a product that ends in `scratch`: those that the
  /// first Start loaded could wait for kernels that spin until it has run. Returns when they are
  /// there.
  absl::Status Load(char* scratch, CUstream stream) const;

  /// Allocates nothing.
  absl::Status Start(CUstream stream) const;

 private:
  struct Matmul {
    std::shared_ptr<const CublasLt> library;
    LtProduct product;
    cublasLtMatmulHeuristicResult_t way;
  };
  CudaGemm(std::shared_ptr<Device> device, const GemmStep& step, int rank, int multiprocessors,
           const Buffers& buffers);
  LtShape ShapeOf(const GemmStep& step) const;
  absl::Status ChooseWay(const OpensLibrary& library, const GemmStep& step);
  absl::Status FillWithZeros(CUstream stream) const;

  std::shared_ptr<Device> device_;
  int64_t element_;  // bytes
  int multiprocessors_;
  GemmProblem problem_;
  const char* a_;
  const char* b_;
  char* c_;
  std::optional<Matmul> matmul_;  // none where there is nothing to sum
  void* workspace_ = nullptr;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_GEMM_CUDA_GEMM_H_
