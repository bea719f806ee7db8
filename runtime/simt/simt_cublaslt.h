#ifndef COCONET_RUNTIME_SIMT_SIMT_CUBLASLT_H_
#define COCONET_RUNTIME_SIMT_SIMT_CUBLASLT_H_

#include "absl/status/statusor.h"
#include "runtime/cuda/gemm/cublaslt_api.h"

namespace coconet {

/// cuBLASLt on simulated GPUs: the host computes a product when its stream comes to it
/// (MakeHostCublasLt); accesses of products are checked like those of kernels.
absl::StatusOr<const CublasLtApi*> OpenSimtCublasLt();

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_SIMT_CUBLASLT_H_
