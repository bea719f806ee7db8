#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/cuda/gemm/cublaslt_api.h"
#include "runtime/cuda/gemm/host_cublaslt.h"

namespace coconet {

/// MakeHostCublasLt on the devices of HostDriver; tests can make its calls fail.
const CublasLtApi& HostCublasLt();
absl::StatusOr<const CublasLtApi*> OpenHostCublasLt();

/// Makes the `call`-th of the calls that can fail, counted from now on, return `result`; 0: none.
void FailCublasLtCall(int call, cublasStatus_t result);
/// The name of the call that failed, "cublasLtMatmul"; "" before it comes.
std::string FailedCublasLtCall();

/// The products that were started since the last call of this function.
struct HostProduct {
  int way = 0;
  int multiprocessors = 0;
  int misalignment = 0;  // bytes from a multiple of 256 to the result
  bool operator==(const HostProduct&) const = default;
};
std::vector<HostProduct> TakeHostProducts();

}  // namespace coconet
