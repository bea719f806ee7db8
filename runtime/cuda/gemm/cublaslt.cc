#include "runtime/cuda/gemm/cublaslt.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/plan.h"

namespace coconet {
namespace {

cudaDataType_t TypeOf(DType dtype) {
  if (dtype == DType::kF32) return CUDA_R_32F;
  if (dtype == DType::kF8E4M3) return CUDA_R_8F_E4M3;
  if (dtype == DType::kF8E5M2) return CUDA_R_8F_E5M2;
  CC_CHECK(dtype == DType::kF16 || dtype == DType::kBF16);
  return dtype == DType::kF16 ? CUDA_R_16F : CUDA_R_16BF;
}

template <class Set, class Of, class Attribute, class Value>
absl::Status SetIn(const CublasLtApi& api, Set set, absl::string_view call, Of of,
                   Attribute attribute, Value value) {
  return ToStatus(api, set(of, attribute, &value, sizeof value), call);
}
/// OK if the library has kernels for these operands of 8-bit floats ("Requirements to use FP8
/// kernels" of cublasLtMatmul).
absl::Status CheckFloats8(const LtShape& shape) {
  constexpr int64_t kBytes = 16;
  const auto refused = [](const auto&... words) {
    return absl::UnimplementedError(absl::StrCat("cuBLASLt: of 8-bit floats, want ", words...,
                                                 "; use cast(bf16, ...) of the operands"));
  };
  if (shape.a.transposed || !shape.b.transposed) {
    return refused("matmul(a, b, transpose_b), have ", shape.a.transposed ? "" : "no ",
                   "transpose_a and ", shape.b.transposed ? "" : "no ", "transpose_b");
  }
  if (shape.a.float8 == DType::kF8E5M2 && shape.b.float8 == DType::kF8E5M2)
    return refused("f8e4m3 as one operand, have f8e5m2 as both");
  const std::pair<const LtShape::Matrix*, int64_t> matrices[] = {
      {&shape.a, 1}, {&shape.b, 1}, {&shape.c, 4}};  // and bytes of an element
  for (const auto& [matrix, size] : matrices) {
    if (matrix->ld * size % kBytes == 0 && matrix->alignment % kBytes == 0) continue;
    return refused("rows at multiples of ", kBytes, " bytes, have ", matrix->ld * size,
                   " bytes from one to the next, and the first aligned to ", matrix->alignment);
  }
  return absl::OkStatus();
}
// cublasLt.h defines each attribute's type; the library refuses a value of another size.
#define RETURN_IF_CANNOT_SET(api, what, of, attribute, ...)                                     \
  RETURN_IF_ERROR(SetIn((api), (api).what##SetAttribute, "cublasLt" #what "SetAttribute", (of), \
                        (attribute), __VA_ARGS__))

}  // namespace

absl::StatusOr<std::shared_ptr<const CublasLt>> CublasLt::Open(const CublasLtApi& api,
                                                               std::shared_ptr<Device> device) {
  ASSIGN_OR_RETURN(const InContext in, device->Enter());
  cublasLtHandle_t handle = nullptr;
  RETURN_IF_CUBLASLT(api, Create, &handle);
  return std::shared_ptr<const CublasLt>(new CublasLt(api, std::move(device), handle));
}

CublasLt::~CublasLt() {
  if (const absl::StatusOr<InContext> in = device_->Enter(); in.ok()) api_.Destroy(handle_);
}

// The library's matrices are column-major, so a row-major matrix appears transposed to it.
// Therefore it is given c^T = op(b)^T . op(a)^T, for which it has all of its kernels.

absl::StatusOr<LtProduct::Layout> LtProduct::DescribeMatrix(const CublasLtApi& api,
                                                            const LtShape& shape,
                                                            const LtShape::Matrix& matrix,
                                                            int64_t rows, int64_t cols) {
  if (matrix.transposed) std::swap(rows, cols);
  cublasLtMatrixLayout_t made = nullptr;
  RETURN_IF_CUBLASLT(api, MatrixLayoutCreate, &made, TypeOf(matrix.float8.value_or(shape.dtype)),
                     static_cast<uint64_t>(cols), static_cast<uint64_t>(rows), matrix.ld);
  Layout layout(made, api.MatrixLayoutDestroy);
  RETURN_IF_CANNOT_SET(api, MatrixLayout, made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                       static_cast<int32_t>(shape.batch));
  RETURN_IF_CANNOT_SET(api, MatrixLayout, made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                       matrix.stride);
  return layout;
}

absl::StatusOr<LtProduct::Operation> LtProduct::DescribeOperation(const CublasLtApi& api,
                                                                  const LtShape& shape) {
  const auto op = [](const LtShape::Matrix& matrix) {
    return static_cast<int32_t>(matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  cublasLtMatmulDesc_t made = nullptr;
  RETURN_IF_CUBLASLT(api, MatmulDescCreate, &made, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  Operation operation(made, api.MatmulDescDestroy);
  RETURN_IF_CANNOT_SET(api, MatmulDesc, made, CUBLASLT_MATMUL_DESC_TRANSA, op(shape.b));
  RETURN_IF_CANNOT_SET(api, MatmulDesc, made, CUBLASLT_MATMUL_DESC_TRANSB, op(shape.a));
  RETURN_IF_CANNOT_SET(api, MatmulDesc, made, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET,
                       static_cast<int32_t>(shape.multiprocessors));
  return operation;
}

absl::StatusOr<LtProduct::Preference> LtProduct::DescribePreference(const CublasLtApi& api,
                                                                    const LtShape& shape) {
  cublasLtMatmulPreference_t made = nullptr;
  RETURN_IF_CUBLASLT(api, MatmulPreferenceCreate, &made);
  Preference preference(made, api.MatmulPreferenceDestroy);
  const auto workspace = static_cast<uint64_t>(shape.workspace_bytes);
  RETURN_IF_CANNOT_SET(api, MatmulPreference, made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                       workspace);
  if (shape.dtype != DType::kF32) {
    // Excludes the schemes that round partial sums to the type of c.
    const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    RETURN_IF_CANNOT_SET(api, MatmulPreference, made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                         scheme);
  }
  const std::pair<cublasLtMatmulPreferenceAttributes_t, int> alignments[] = {
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shape.b.alignment},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shape.a.alignment},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shape.c.alignment},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shape.c.alignment}};
  for (const auto& [attribute, alignment] : alignments)
    RETURN_IF_CANNOT_SET(api, MatmulPreference, made, attribute, static_cast<uint32_t>(alignment));
  return preference;
}

absl::StatusOr<LtProduct> LtProduct::Describe(const CublasLtApi& api, const LtShape& shape) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::max({shape.batch, shape.m, shape.n, shape.k}) > kMost) {
    const std::string have =
        absl::StrCat(shape.batch, " x [", shape.m, ", ", shape.n, ", ", shape.k, "]");
    return absl::UnimplementedError(absl::StrCat("cuBLASLt: want sizes below 2^31, have ", have));
  }
  if (shape.a.float8.has_value()) RETURN_IF_ERROR(CheckFloats8(shape));
  ASSIGN_OR_RETURN(Operation operation, DescribeOperation(api, shape));
  ASSIGN_OR_RETURN(Layout a, DescribeMatrix(api, shape, shape.a, shape.m, shape.k));
  ASSIGN_OR_RETURN(Layout b, DescribeMatrix(api, shape, shape.b, shape.k, shape.n));
  ASSIGN_OR_RETURN(Layout c, DescribeMatrix(api, shape, shape.c, shape.m, shape.n));
  ASSIGN_OR_RETURN(Preference preference, DescribePreference(api, shape));
  return LtProduct(std::move(operation), std::move(a), std::move(b), std::move(c),
                   std::move(preference));
}

absl::StatusOr<std::vector<cublasLtMatmulHeuristicResult_t>> LtProduct::Ways(
    const CublasLt& library) const {
  ASSIGN_OR_RETURN(const InContext in, library.device().Enter());
  std::vector<cublasLtMatmulHeuristicResult_t> ways(kMostGemmCandidates);
  int count = 0;
  RETURN_IF_CUBLASLT(library.api(), MatmulAlgoGetHeuristic, library.handle(), operation_.get(),
                     b_.get(), a_.get(), c_.get(), c_.get(), preference_.get(), kMostGemmCandidates,
                     ways.data(), &count);
  ways.resize(std::clamp(count, 0, kMostGemmCandidates));
  std::erase_if(ways, [](const cublasLtMatmulHeuristicResult_t& way) {
    return way.state != CUBLAS_STATUS_SUCCESS;
  });
  if (ways.empty())
    return absl::UnimplementedError(
        "cublasLtMatmulAlgoGetHeuristic: has no way to multiply these matrices on this GPU");
  return ways;
}

absl::Status LtProduct::Start(const CublasLt& library, const cublasLtMatmulHeuristicResult_t& way,
                              const void* a, const void* b, void* c, void* workspace,
                              CUstream stream) const {
  const float one = 1, zero = 0;
  RETURN_IF_CUBLASLT(library.api(), Matmul, library.handle(), operation_.get(), &one, b, b_.get(),
                     a, a_.get(), &zero, c, c_.get(), c, c_.get(), &way.algo, workspace,
                     way.workspaceSize, stream);
  return absl::OkStatus();
}

}  // namespace coconet
