#pragma once

#include <cublasLt.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coconet/base/status.h"

namespace coconet {

// clang-format off
#define COCONET_CUBLASLT_FUNCTIONS(X) \
  X(GetStatusName) X(GetStatusString) X(GetVersion) X(Create) X(Destroy) X(MatrixLayoutCreate) \
  X(MatrixLayoutDestroy) X(MatrixLayoutSetAttribute) X(MatmulDescCreate) X(MatmulDescDestroy) \
  X(MatmulDescSetAttribute) X(MatmulPreferenceCreate) X(MatmulPreferenceDestroy) \
  X(MatmulPreferenceSetAttribute) X(MatmulAlgoGetHeuristic) X(Matmul)
// clang-format on

/// The functions of libcublasLt by their names without "cublasLt". Opened at run time, and only for
/// plans that multiply matrices on a GPU, because the library has hundreds of megabytes. Tests fill
/// it with fakes.
struct CublasLtApi {
#define COCONET_DECLARE(name) decltype(&::cublasLt##name) name = nullptr;
  COCONET_CUBLASLT_FUNCTIONS(COCONET_DECLARE)
#undef COCONET_DECLARE
};

/// OK for CUBLAS_STATUS_SUCCESS; else "call: NAME (number): <the library's text>".
/// ResourceExhausted: out of memory. Unavailable: no device. FailedPrecondition: library and device
/// do not match. Unimplemented: no such product. Internal: anything else.
absl::Status ToStatus(const CublasLtApi& library, cublasStatus_t result, absl::string_view call);

/// RETURN_IF_CUBLASLT(library, Create, &handle) calls library.Create and returns its error
/// as a Status.
#define RETURN_IF_CUBLASLT(library, function, ...) \
  RETURN_IF_ERROR(                                 \
      ::coconet::ToStatus((library), (library).function(__VA_ARGS__), "cublasLt" #function))

/// Opens libcublasLt on the first call: by its plain names, under CUDA_HOME, or where the build
/// found it. It stays open. Unavailable, saying what to do, if it is missing.
absl::StatusOr<const CublasLtApi*> OpenCublasLt();

/// OpenCublasLt, or a test's replacement.
using OpensCublasLt = absl::StatusOr<const CublasLtApi*> (*)();

/// The same, from the first of these files that can be opened and has all functions.
absl::StatusOr<CublasLtApi> CublasLtIn(absl::Span<const std::string> files);

}  // namespace coconet
