#pragma once

#include "absl/status/status.h"
#include "third_party/dynamic/dynamic_library.h"

namespace coconet {

extern DynamicLibrary onednn_library;

/// Opens oneDNN, and with it OpenMP's library. Functions of <oneapi/dnnl/dnnl.h> and <omp.h> may be
/// called once it has returned OK. Unavailable if there is none, or if it is older than the version
/// of the build. Thread-safe; opened once.
absl::Status OpenOneDnn();

}  // namespace coconet
