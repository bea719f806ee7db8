#ifndef COCONET_RUNTIME_SIMT_SIMT_CUBLASLT_H_
#define COCONET_RUNTIME_SIMT_SIMT_CUBLASLT_H_

#include "absl/status/statusor.h"
#include "runtime/cuda/gemm/cublaslt_api.h"

namespace coconet {

/// cuBLASLt on simulated GPUs: the host multiplies when the stream comes to it (MakeHostCublasLt),
/// and what a product reads and writes is checked like what kernels do.
absl::StatusOr<const CublasLtApi*> OpenSimtCublasLt();

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_SIMT_CUBLASLT_H_
