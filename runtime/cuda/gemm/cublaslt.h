#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/base/dtype.h"
#include "runtime/cuda/driver/device.h"
#include "runtime/cuda/gemm/cublaslt_api.h"

namespace coconet {

/// A cuBLASLt handle on a GPU. Opening and closing it may wait for all kernels on the GPU: a rank
/// does so once, while no peer's kernel waits for it.
class CublasLt {
 public:
  static absl::StatusOr<std::shared_ptr<const CublasLt>> Open(const CublasLtApi& api,
                                                              std::shared_ptr<Device> device);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  const CublasLtApi& api() const { return api_; }
  const Device& device() const { return *device_; }
  cublasLtHandle_t handle() const { return handle_; }

 private:
  CublasLt(const CublasLtApi& api, std::shared_ptr<Device> device, cublasLtHandle_t handle)
      : api_(api), device_(std::move(device)), handle_(handle) {}

  const CublasLtApi& api_;
  std::shared_ptr<Device> device_;
  cublasLtHandle_t handle_;
};

/// c[t] = op(a[t]) . op(b[t]) for t < batch, on row-major matrices, as in GemmStep; all
/// sizes are positive.
struct LtShape {
  struct Matrix {
    int64_t ld = 0;      // elements between consecutive stored rows
    int64_t stride = 0;  // elements between consecutive batches; 0: all share one matrix
    bool transposed = false;
    int alignment = 1;  // bytes, of the first element of every matrix of the batch
    std::optional<DType> float8 = std::nullopt;  // a and b, with `dtype` f32
  };
  DType dtype{};  // f32, f16 or bf16
  int64_t batch = 1, m = 0, n = 0, k = 0;
  Matrix a = {}, b = {}, c = {};
  int multiprocessors = 0;      // to optimise for; 0: all
  int64_t workspace_bytes = 0;  // upper limit
};

/// The library's description of a product, summed in f32 and rounded once. Needs no GPU.
class LtProduct {
 public:
  /// Unimplemented for what the library does not take: of 8-bit floats, operands whose rows are not
  /// those along k, or do not lie at multiples of 16 bytes, and f8e5m2 times f8e5m2.
  static absl::StatusOr<LtProduct> Describe(const CublasLtApi& api, const LtShape& shape);

  /// The algorithms for the product on the GPU of `library`, by the library's expected speed,
  /// fastest first. Unimplemented if there is none.
  absl::StatusOr<std::vector<cublasLtMatmulHeuristicResult_t>> Ways(const CublasLt& library) const;
  /// Starts the product by algorithm `way`, with way.workspaceSize bytes at `workspace`. The device
  /// of `library` must be current.
  absl::Status Start(const CublasLt& library, const cublasLtMatmulHeuristicResult_t& way,
                     const void* a, const void* b, void* c, void* workspace, CUstream stream) const;

 private:
  using Layout =
      std::unique_ptr<cublasLtMatrixLayoutOpaque_t, decltype(CublasLtApi::MatrixLayoutDestroy)>;
  using Operation =
      std::unique_ptr<cublasLtMatmulDescOpaque_t, decltype(CublasLtApi::MatmulDescDestroy)>;
  using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                                     decltype(CublasLtApi::MatmulPreferenceDestroy)>;
  LtProduct(Operation operation, Layout a, Layout b, Layout c, Preference preference)
      : operation_(std::move(operation)),
        a_(std::move(a)),
        b_(std::move(b)),
        c_(std::move(c)),
        preference_(std::move(preference)) {}
  static absl::StatusOr<Layout> DescribeMatrix(const CublasLtApi& api, const LtShape& shape,
                                               const LtShape::Matrix& matrix, int64_t rows,
                                               int64_t cols);
  static absl::StatusOr<Operation> DescribeOperation(const CublasLtApi& api, const LtShape& shape);
  static absl::StatusOr<Preference> DescribePreference(const CublasLtApi& api,
                                                       const LtShape& shape);

  Operation operation_;
  Layout a_, b_, c_;
  Preference preference_;
};

}  // namespace coconet
