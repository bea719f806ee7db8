#include "runtime/cuda/gemm/cublaslt_api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "third_party/cuda/paths.h"

namespace coconet {
namespace {

std::vector<std::string> Files() {
  std::vector<std::string> files = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0') {
    for (const char* folder : {"/lib64/", "/lib/"})
      files.push_back(absl::StrCat(home, folder, "libcublasLt.so.13"));
  }
  if (*kCublasLtHint != '\0') files.emplace_back(kCublasLtHint);
  return files;
}

template <class Function>
bool Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

/// Fills in `api`; returns the names of the missing functions.
std::vector<std::string> Fill(void* library, CublasLtApi& api) {
  std::vector<std::string> missing;
#define COCONET_NEED(name) \
  if (!Find(library, "cublasLt" #name, api.name)) missing.emplace_back("cublasLt" #name);
  COCONET_CUBLASLT_FUNCTIONS(COCONET_NEED)
#undef COCONET_NEED
  return missing;
}

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
  std::vector<std::string> tried;
  for (const std::string& file : files) {
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried.emplace_back(dlerror());
      continue;
    }
    CublasLtApi api;
    const std::vector<std::string> missing = Fill(library, api);
    if (missing.empty()) return api;
    tried.push_back(absl::StrCat(file, " lacks ", absl::StrJoin(missing, ", ")));
    dlclose(library);
  }
  return absl::UnavailableError(
      absl::StrCat("cuBLASLt (libcublasLt), which multiplies matrices on GPUs, cannot be opened; "
                   "install the CUDA toolkit with ./setup.sh, or set "
                   "CUDA_HOME or LD_LIBRARY_PATH to where it is. Tried: ",
                   absl::StrJoin(tried, "; ")));
}

absl::StatusOr<const CublasLtApi*> OpenCublasLt() {
  static const auto* api = new absl::StatusOr<CublasLtApi>(CublasLtIn(Files()));
  if (!api->ok()) return api->status();
  return &**api;
}

}  // namespace coconet
