#include "runtime/cuda/gemm/cuda_gemm.h"

#include <utility>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int kAlignment = 256;  // bytes; the library makes no use of more

/// NVIDIA's recommended workspace size for cuBLAS.
int64_t WorkspaceBytes(const DeviceFacts& facts) {
  constexpr int64_t kMiB = 1 << 20;
  if (facts.major == 9 || facts.major == 10) return 32 * kMiB;
  return (facts.major == 12 ? 12 : 4) * kMiB;
}

uintptr_t MisalignmentOf(const char* address) {
  return reinterpret_cast<uintptr_t>(address) % kAlignment;
}

/// A power of 2 that divides the addresses of all matrices of a batch.
int AlignmentOf(const char* first, int64_t stride_bytes) {
  const uint64_t bits = MisalignmentOf(first) | static_cast<uint64_t>(stride_bytes) | kAlignment;
  return 1 << absl::countr_zero(bits);
}

}  // namespace

CudaGemm::CudaGemm(std::shared_ptr<Device> device, const GemmStep& step, int rank,
                   int multiprocessors, const Buffers& buffers)
    : device_(std::move(device)),
      element_(static_cast<int64_t>(SizeOf(step.dtype))),
      multiprocessors_(multiprocessors),
      problem_(ProblemOf(step, rank)),
      a_(buffers.a + problem_.a.begin * static_cast<int64_t>(SizeOf(step.TypeOf(step.a)))),
      b_(buffers.b + problem_.b.begin * static_cast<int64_t>(SizeOf(step.TypeOf(step.b)))),
      c_(buffers.c + problem_.c.begin * element_) {}

absl::StatusOr<std::unique_ptr<CudaGemm>> CudaGemm::Make(std::shared_ptr<Device> device,
                                                         const OpensLibrary& library,
                                                         const GemmStep& step, int rank,
                                                         int multiprocessors,
                                                         const Buffers& buffers) {
  std::unique_ptr<CudaGemm> gemm(
      new CudaGemm(std::move(device), step, rank, multiprocessors, buffers));
  if (gemm->problem_.m == 0 || gemm->problem_.k == 0) return gemm;
  RETURN_IF_ERROR(gemm->ChooseWay(library, step));
  return gemm;
}

LtShape CudaGemm::ShapeOf(const GemmStep& step) const {
  const GemmProblem& p = problem_;
  const auto matrix = [&](const GemmStep::Matrix& of, const MatrixView& view, bool transposed,
                          const char* first) {
    const auto size = static_cast<int64_t>(SizeOf(step.TypeOf(of)));
    const int64_t stride = p.batch == 1 ? 0 : view.batch;
    return LtShape::Matrix{.ld = transposed ? view.col : view.row,
                           .stride = stride,
                           .transposed = transposed,
                           .alignment = AlignmentOf(first, stride * size),
                           .float8 = of.float8};
  };
  return {.dtype = step.dtype,
          .batch = p.batch,
          .m = p.m,
          .n = p.n,
          .k = p.k,
          .a = matrix(step.a, p.a, step.transpose_a, a_),
          .b = matrix(step.b, p.b, step.transpose_b, b_),
          .c = matrix(step.c, p.c, false, c_),
          .multiprocessors = multiprocessors_,
          .workspace_bytes = WorkspaceBytes(device_->facts())};
}

absl::Status CudaGemm::ChooseWay(const OpensLibrary& open, const GemmStep& step) {
  const std::string context = absl::StrCat("Bind: ", step.label);
  const DeviceFacts& gpu = device_->facts();
  if (step.a.float8.has_value() && !gpu.simulated() && 10 * gpu.major + gpu.minor < 89) {
    return absl::UnimplementedError(absl::StrCat(
        context, ": want a GPU of sm_89 or later for products of 8-bit floats, have sm_", gpu.major,
        gpu.minor, "; use cast(bf16, ...) of the operands"));
  }
  if (step.scaled()) {
    return absl::UnimplementedError(absl::StrCat(
        context,
        ": want a product without scales, which the GPU's library is given none of, have "
        "scales of blocks; multiply by the scales before the product, in bf16, or use hosts"));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const CublasLt> library, open());
  absl::StatusOr<LtProduct> product = LtProduct::Describe(library->api(), ShapeOf(step));
  if (!product.ok()) return WithContext(product.status(), context);
  const auto ways = product->Ways(*library);
  if (!ways.ok()) return WithContext(ways.status(), context);
  RETURN_IF_ERROR(CheckCandidate(step, static_cast<int>(ways->size())));
  matmul_.emplace(Matmul{std::move(library), *std::move(product), (*ways)[step.candidate]});
  return absl::OkStatus();
}

int64_t CudaGemm::scratch_bytes() const {
  if (!matmul_.has_value()) return 0;
  const int64_t last = problem_.c.At(problem_.batch - 1, problem_.m - 1, problem_.n - 1).begin;
  return kAlignment + (last + 1 - problem_.c.begin) * element_;
}

absl::Status CudaGemm::Load(char* scratch, CUstream stream) const {
  if (!matmul_.has_value()) return absl::OkStatus();
  // An Allocation is a multiple of kAlignment, so this address is aligned as c is.
  char* c = scratch + MisalignmentOf(c_);
  RETURN_IF_ERROR(
      matmul_->product.Start(*matmul_->library, matmul_->way, a_, b_, c, workspace_, stream));
  RETURN_IF_CU(device_->driver(), StreamSynchronize, stream);
  return absl::OkStatus();
}

absl::Status CudaGemm::Start(CUstream stream) const {
  if (problem_.m == 0) return absl::OkStatus();
  if (!matmul_.has_value()) return FillWithZeros(stream);
  return matmul_->product.Start(*matmul_->library, matmul_->way, a_, b_, c_, workspace_, stream);
}

absl::Status CudaGemm::FillWithZeros(CUstream stream) const {
  const auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements * element_); };
  for (int64_t t = 0; t < problem_.batch; ++t) {
    const auto first = reinterpret_cast<CUdeviceptr>(c_ + t * problem_.c.batch * element_);
    RETURN_IF_CU(device_->driver(), MemsetD2D8Async, first, bytes(problem_.c.row), 0,
                 bytes(problem_.n), static_cast<size_t>(problem_.m), stream);
  }
  return absl::OkStatus();
}

}  // namespace coconet
