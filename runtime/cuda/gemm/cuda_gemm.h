#pragma once

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

/// A bound GemmStep of one rank on a GPU: addresses known, everything allocated.
class CudaGemm {
 public:
  using OpensLibrary = std::function<absl::StatusOr<std::shared_ptr<const CublasLt>>()>;
  /// Addresses of the buffers of the three matrices.
  struct Buffers {
    const char* a;
    const char* b;
    char* c;
  };
  /// `rank`: number in its pipeline stage. `multiprocessors`: to optimise for; 0: all. `library` is
  /// called only if k > 0. OutOfRange if the library has no such candidate. Requires CheckGemm.
  static absl::StatusOr<std::unique_ptr<CudaGemm>> Make(std::shared_ptr<Device> device,
                                                        const OpensLibrary& library,
                                                        const GemmStep& step, int rank,
                                                        int multiprocessors,
                                                        const Buffers& buffers);

  /// Bytes that Start needs at the address given to UseWorkspace; concurrent products must not
  /// share them.
  int64_t workspace_bytes() const {
    return matmul_.has_value() ? static_cast<int64_t>(matmul_->way.workspaceSize) : 0;
  }
  void UseWorkspace(void* workspace) { workspace_ = workspace; }

  /// Bytes that Load needs; 0 if there is nothing to load.
  int64_t scratch_bytes() const;
  /// Loads the library's kernels onto the GPU by computing the product into `scratch`; returns when
  /// they are loaded. If the first Start loaded them, it could wait for kernels that spin until it
  /// has run. The device must be current.
  absl::Status Load(char* scratch, CUstream stream) const;

  /// Starts the product in `stream`; the device must be current. Does not allocate.
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
  int64_t element_;  // bytes, of c
  int multiprocessors_;
  GemmProblem problem_;
  const char* a_;
  const char* b_;
  char* c_;
  std::optional<Matmul> matmul_;  // nullopt: c becomes zeros
  void* workspace_ = nullptr;
};

}  // namespace coconet
