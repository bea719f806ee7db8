#include "runtime/cuda/gemm/cublaslt_api.h"

#include "absl/strings/str_cat.h"
#include "third_party/cuda/paths.h"
#include "third_party/dynamic/open_library.h"

namespace coconet {
namespace {

absl::StatusCode CodeOf(cublasStatus_t result) {
  switch (result) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return absl::StatusCode::kResourceExhausted;
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return absl::StatusCode::kUnavailable;
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return absl::StatusCode::kFailedPrecondition;
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return absl::StatusCode::kUnimplemented;
    default:  // cublasStatus_t is NVIDIA's, and grows
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status ToStatus(const CublasLtApi& library, cublasStatus_t result, absl::string_view call) {
  if (result == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::Status(CodeOf(result), absl::StrCat(call, ": ", library.GetStatusName(result), " (",
                                                   static_cast<int>(result),
                                                   "): ", library.GetStatusString(result)));
}

absl::StatusOr<CublasLtApi> CublasLtIn(absl::Span<const std::string> files) {
  CublasLtApi api;
  const OpenedLibrary opened = OpenFirst(files, [&](void* library, const std::string&) {
    FunctionTable table(SymbolsOf(library));
#define COCONET_NEED(name) table.Need("cublasLt" #name, api.name);
    COCONET_CUBLASLT_FUNCTIONS(COCONET_NEED)
#undef COCONET_NEED
    return table.missing().empty() ? "" : absl::StrCat(" lacks ", table.missing());
  });
  if (opened.handle != nullptr) return api;
  return absl::UnavailableError(
      absl::StrCat("cuBLASLt (libcublasLt), which multiplies matrices on GPUs, cannot be opened; "
                   "install the CUDA toolkit with ./setup.sh, or set "
                   "CUDA_HOME or LD_LIBRARY_PATH to where it is. Tried: ",
                   opened.tried));
}

absl::StatusOr<const CublasLtApi*> OpenCublasLt() {
  static const auto* api = new absl::StatusOr<CublasLtApi>(CublasLtIn(PlacesOf(
      {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}, "CUDA_HOME", kCublasLtHint)));
  if (!api->ok()) return api->status();
  return &**api;
}

}  // namespace coconet
