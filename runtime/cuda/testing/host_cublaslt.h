#ifndef COCONET_RUNTIME_CUDA_TESTING_HOST_CUBLASLT_H_
#define COCONET_RUNTIME_CUDA_TESTING_HOST_CUBLASLT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/cuda/gemm/cublaslt_api.h"
#include "runtime/cuda/gemm/host_cublaslt.h"

namespace coconet {

/// MakeHostCublasLt on the devices of HostDriver, with calls that a test can make fail.
const CublasLtApi& HostCublasLt();
absl::StatusOr<const CublasLtApi*> OpenHostCublasLt();

/// The `call`-th call from now on, of those that can fail, returns `result`; 0: none does.
void FailCublasLtCall(int call, cublasStatus_t result);
/// What that call was, "cublasLtMatmul"; "" when it has not come.
std::string FailedCublasLtCall();

/// Products that were started since this was last called.
struct HostProduct {
  int way = 0;
  int multiprocessors = 0;
  int misalignment = 0;  // bytes from a multiple of 256 to the result
  bool operator==(const HostProduct&) const = default;
};
std::vector<HostProduct> TakeHostProducts();

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_TESTING_HOST_CUBLASLT_H_
