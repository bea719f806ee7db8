#include "runtime/cuda/gemm/host_cublaslt.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "coconet/base/dtype.h"

namespace coconet {
namespace {

// ---- Descriptions

struct Layout {
  cudaDataType_t type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t order = CUBLASLT_ORDER_COL;
  int32_t batch = 1;
  int64_t stride = 0;

  int64_t At(int64_t t, int64_t row, int64_t col) const {
    return t * stride + (order == CUBLASLT_ORDER_COL ? col * ld + row : row * ld + col);
  }
};
struct Operation {
  int32_t compute_type, scale_type;
  int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  int32_t multiprocessors = 0;
};
struct Preference {
  uint64_t workspace_bytes = 0;
  uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignments[4] = {256, 256, 256, 256};  // of a, b, c and d
};
struct Handle {
  int device;
  const HostLtDevices* devices;
};
/// An algorithm, as stored inside cublasLtMatmulAlgo_t.
struct Way {
  int64_t number;
  uint64_t workspace_bytes;
  uint32_t alignments[4];
};
static_assert(sizeof(Way) <= sizeof(cublasLtMatmulAlgo_t));

Layout* Of(cublasLtMatrixLayout_t layout) { return reinterpret_cast<Layout*>(layout); }
Operation* Of(cublasLtMatmulDesc_t operation) { return reinterpret_cast<Operation*>(operation); }
Preference* Of(cublasLtMatmulPreference_t preference) {
  return reinterpret_cast<Preference*>(preference);
}
Handle* Of(cublasLtHandle_t handle) { return reinterpret_cast<Handle*>(handle); }

template <class Field>
cublasStatus_t Take(const void* value, size_t bytes, Field& field) {
  if (value == nullptr || bytes != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t SetInLayout(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                           const void* value, size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return Take(value, bytes, Of(layout)->order);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return Take(value, bytes, Of(layout)->batch);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return Take(value, bytes, Of(layout)->stride);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t SetInOperation(cublasLtMatmulDesc_t operation,
                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                              size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return Take(value, bytes, Of(operation)->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return Take(value, bytes, Of(operation)->transpose_b);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
      return Take(value, bytes, Of(operation)->multiprocessors);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t SetInPreference(cublasLtMatmulPreference_t preference,
                               cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                               size_t bytes) {
  uint32_t* alignments = Of(preference)->alignments;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return Take(value, bytes, Of(preference)->workspace_bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return Take(value, bytes, Of(preference)->schemes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return Take(value, bytes, alignments[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return Take(value, bytes, alignments[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return Take(value, bytes, alignments[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return Take(value, bytes, alignments[3]);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

// ---- Products

struct Sizes {
  int64_t m, n, k;
};
Sizes SizesOf(const Operation& operation, const Layout& a, const Layout& c) {
  return {static_cast<int64_t>(c.rows), static_cast<int64_t>(c.cols),
          static_cast<int64_t>(operation.transpose_a == CUBLAS_OP_N ? a.cols : a.rows)};
}

bool Has(const Layout& layout, int32_t transpose, int64_t rows, int64_t cols) {
  if (transpose != CUBLAS_OP_N) std::swap(rows, cols);
  const int64_t least = layout.order == CUBLASLT_ORDER_COL ? rows : cols;
  return static_cast<int64_t>(layout.rows) == rows && static_cast<int64_t>(layout.cols) == cols &&
         layout.ld >= least;
}

bool IsFloat8(const Layout& layout) {
  return layout.type == CUDA_R_8F_E4M3 || layout.type == CUDA_R_8F_E5M2;
}

/// All of one type; or a and b of 8-bit floats, with what the library wants of these.
bool FitTypes(const Operation& operation, const Layout& a, const Layout& b, const Layout& c,
              const Layout& d) {
  if (!IsFloat8(a) && !IsFloat8(b)) return b.type == a.type && c.type == a.type && d.type == a.type;
  return IsFloat8(a) && IsFloat8(b) && c.type == CUDA_R_32F && d.type == CUDA_R_32F &&
         !(a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) &&
         operation.transpose_a == CUBLAS_OP_T && operation.transpose_b == CUBLAS_OP_N &&
         a.ld % 16 == 0 && b.ld % 16 == 0 && c.ld % 4 == 0 && d.ld % 4 == 0;
}

cublasStatus_t Check(const Handle* handle, const Operation& operation, const Layout& a,
                     const Layout& b, const Layout& c, const Layout& d) {
  if (handle == nullptr || handle->device != handle->devices->current())
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (operation.compute_type != CUBLAS_COMPUTE_32F || operation.scale_type != CUDA_R_32F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto [m, n, k] = SizesOf(operation, a, c);
  const bool fit = Has(a, operation.transpose_a, m, k) && Has(b, operation.transpose_b, k, n) &&
                   Has(c, CUBLAS_OP_N, m, n) && Has(d, CUBLAS_OP_N, m, n);
  if (!fit || m == 0 || n == 0 || k == 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (!FitTypes(operation, a, b, c, d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (const Layout* other : {&b, &c, &d}) {
    if (other->batch != a.batch || a.batch < 1) return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t GetWays(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                       cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int most,
                       cublasLtMatmulHeuristicResult_t* ways, int* count) {
  if (most <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  const cublasStatus_t fits = Check(Of(handle), *Of(operation), *Of(a), *Of(b), *Of(c), *Of(d));
  if (fits != CUBLAS_STATUS_SUCCESS) return fits;
  const Preference& wants = *Of(preference);
  const bool may_round = (wants.schemes & (CUBLASLT_REDUCTION_SCHEME_INPLACE |
                                           CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)) != 0;
  constexpr uint64_t kWorkspaces[kHostWays + 1] = {64 << 10, 0, 1 << 20, 0};
  *count = 0;
  for (int number = 0; number < kHostWays + may_round && *count < most; ++number) {
    if (kWorkspaces[number] > wants.workspace_bytes) continue;
    Way way{.number = number, .workspace_bytes = kWorkspaces[number], .alignments = {}};
    std::copy(std::begin(wants.alignments), std::end(wants.alignments), way.alignments);
    cublasLtMatmulHeuristicResult_t& result = ways[(*count)++];
    result = {};
    std::memcpy(&result.algo, &way, sizeof way);
    result.workspaceSize = way.workspace_bytes;
  }
  return CUBLAS_STATUS_SUCCESS;
}

struct Product {
  Operation operation;
  Layout a, b, c, d;
  const void *a_data, *b_data, *c_data;
  void* d_data;
  float alpha, beta;
  Way way;
  char* workspace;
};

DType TypeOf(const Layout& layout) {
  switch (layout.type) {
    case CUDA_R_32F:
      return DType::kF32;
    case CUDA_R_16F:
      return DType::kF16;
    case CUDA_R_8F_E4M3:
      return DType::kF8E4M3;
    case CUDA_R_8F_E5M2:
      return DType::kF8E5M2;
    default:
      return DType::kBF16;
  }
}

float Rounded(DType type, float value) {
  char stored[sizeof(float)];
  StoreElement(type, stored, 0, value);
  return static_cast<float>(LoadElement(type, stored, 0).real());
}

float Element(const Product& p, int64_t t, int64_t row, int64_t col, int64_t inner) {
  const DType type = TypeOf(p.d), of_a = TypeOf(p.a), of_b = TypeOf(p.b);
  float sum = 0;
  for (int64_t i = 0; i < inner; ++i) {
    const int64_t at_a =
        p.operation.transpose_a == CUBLAS_OP_N ? p.a.At(t, row, i) : p.a.At(t, i, row);
    const int64_t at_b =
        p.operation.transpose_b == CUBLAS_OP_N ? p.b.At(t, i, col) : p.b.At(t, col, i);
    sum += static_cast<float>(LoadElement(of_a, p.a_data, at_a).real()) *
           static_cast<float>(LoadElement(of_b, p.b_data, at_b).real());
    if (p.way.number == kHostWays) sum = Rounded(type, sum);
  }
  const float before =
      p.beta == 0
          ? 0
          : p.beta * static_cast<float>(LoadElement(type, p.c_data, p.c.At(t, row, col)).real());
  return p.alpha * sum + before;
}

/// Computes NaNs if another product has used the workspace meanwhile.
void Compute(const Product& p) {
  static std::atomic<uint64_t> products{0};
  const uint64_t mine = ++products;
  const auto words = [&] { return reinterpret_cast<uint64_t*>(p.workspace); };
  const size_t last = p.way.workspace_bytes / sizeof(uint64_t) - 1;
  if (p.way.workspace_bytes > 0) words()[0] = words()[last] = mine;
  const auto [m, n, k] = SizesOf(p.operation, p.a, p.c);
  const auto store = [&](auto value) {
    for (int64_t t = 0; t < p.d.batch; ++t) {
      for (int64_t row = 0; row < m; ++row) {
        for (int64_t col = 0; col < n; ++col)
          StoreElement(TypeOf(p.d), p.d_data, p.d.At(t, row, col), value(t, row, col));
      }
    }
  };
  store([&, inner = k](int64_t t, int64_t row, int64_t col) {
    return Element(p, t, row, col, inner);
  });
  const bool shared = p.way.workspace_bytes > 0 && (words()[0] != mine || words()[last] != mine);
  if (shared)
    store([](int64_t, int64_t, int64_t) { return std::numeric_limits<double>::quiet_NaN(); });
}

bool Aligned(const void* address, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

/// True when every matrix of the batch is aligned as promised.
bool Lies(const Layout& layout, const void* address, uint32_t alignment) {
  const size_t element = SizeOf(TypeOf(layout));
  return address != nullptr && Aligned(address, alignment) &&
         (layout.batch == 1 || layout.stride * element % alignment == 0);
}

/// Appends the accesses to the rows, or columns, of every matrix of the batch.
void Append(const Layout& layout, const void* data, bool writes,
            std::vector<HostLtWork::Access>& accesses) {
  const bool by_column = layout.order == CUBLASLT_ORDER_COL;
  const uint64_t lines = by_column ? layout.cols : layout.rows,
                 length = by_column ? layout.rows : layout.cols;
  const size_t element = SizeOf(TypeOf(layout));
  auto* begin = static_cast<char*>(const_cast<void*>(data));
  for (int64_t t = 0; t < layout.batch; ++t) {
    for (uint64_t line = 0; line < lines; ++line) {
      const int64_t first = by_column ? layout.At(t, 0, static_cast<int64_t>(line))
                                      : layout.At(t, static_cast<int64_t>(line), 0);
      accesses.push_back({begin + first * static_cast<int64_t>(element), length * element, writes});
    }
  }
}

std::vector<HostLtWork::Access> AccessesOf(const Product& p) {
  std::vector<HostLtWork::Access> accesses;
  Append(p.a, p.a_data, false, accesses);
  Append(p.b, p.b_data, false, accesses);
  if (p.beta != 0) Append(p.c, p.c_data, false, accesses);
  Append(p.d, p.d_data, true, accesses);
  return accesses;
}

cublasStatus_t Multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha,
                        const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                        cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                        cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                        const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes,
                        cudaStream_t stream) {
  const cublasStatus_t fits =
      Check(Of(handle), *Of(operation), *Of(a_layout), *Of(b_layout), *Of(c_layout), *Of(d_layout));
  if (fits != CUBLAS_STATUS_SUCCESS) return fits;
  if (algo == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  Way way{};
  std::memcpy(&way, algo, sizeof way);
  const bool lie =
      Lies(*Of(a_layout), a, way.alignments[0]) && Lies(*Of(b_layout), b, way.alignments[1]) &&
      Lies(*Of(c_layout), c, way.alignments[2]) && Lies(*Of(d_layout), d, way.alignments[3]);
  const bool works =
      way.workspace_bytes == 0 ||
      (workspace != nullptr && workspace_bytes >= way.workspace_bytes && Aligned(workspace, 16));
  if (!lie || !works) return CUBLAS_STATUS_INVALID_VALUE;
  const Product product{*Of(operation),
                        *Of(a_layout),
                        *Of(b_layout),
                        *Of(c_layout),
                        *Of(d_layout),
                        a,
                        b,
                        c,
                        d,
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta),
                        way,
                        static_cast<char*>(workspace)};
  HostLtWork work{.compute = [product] { Compute(product); }, .accesses = AccessesOf(product)};
  work.way = static_cast<int>(way.number);
  work.multiprocessors = product.operation.multiprocessors;
  work.result = d;
  Of(handle)->devices->give(stream, std::move(work));
  return CUBLAS_STATUS_SUCCESS;
}

// ---- The table

template <class Owned, class Opaque>
cublasStatus_t Delete(Opaque* opaque) {
  delete reinterpret_cast<Owned*>(opaque);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t CreateHostCublasLt(cublasLtHandle_t* handle, const HostLtDevices& devices) {
  if (devices.current() < 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cublasLtHandle_t>(new Handle{devices.current(), &devices});
  return CUBLAS_STATUS_SUCCESS;
}

CublasLtApi MakeHostCublasLt(decltype(CublasLtApi::Create) create) {
  CublasLtApi api;
  api.GetStatusName = [](cublasStatus_t) { return "a status of the host's products"; };
  api.GetStatusString = [](cublasStatus_t) { return "it does not multiply so"; };
  api.GetVersion = [] { return size_t{CUBLAS_VERSION}; };
  api.Create = create;
  api.Destroy = Delete<Handle>;
  api.MatrixLayoutCreate = [](cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                              uint64_t cols, int64_t ld) {
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
        new Layout{.type = type, .rows = rows, .cols = cols, .ld = ld});
    return CUBLAS_STATUS_SUCCESS;
  };
  api.MatrixLayoutDestroy = Delete<Layout>;
  api.MatrixLayoutSetAttribute = SetInLayout;
  api.MatmulDescCreate = [](cublasLtMatmulDesc_t* operation, cublasComputeType_t compute_type,
                            cudaDataType_t scale_type) {
    *operation = reinterpret_cast<cublasLtMatmulDesc_t>(
        new Operation{.compute_type = compute_type, .scale_type = scale_type});
    return CUBLAS_STATUS_SUCCESS;
  };
  api.MatmulDescDestroy = Delete<Operation>;
  api.MatmulDescSetAttribute = SetInOperation;
  api.MatmulPreferenceCreate = [](cublasLtMatmulPreference_t* preference) {
    *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
    return CUBLAS_STATUS_SUCCESS;
  };
  api.MatmulPreferenceDestroy = Delete<Preference>;
  api.MatmulPreferenceSetAttribute = SetInPreference;
  api.MatmulAlgoGetHeuristic = GetWays;
  api.Matmul = Multiply;
  return api;
}

}  // namespace coconet
