#pragma once

#include "absl/status/status.h"
#include "third_party/dynamic/dynamic_library.h"

namespace coconet {

extern DynamicLibrary onednn_library;

/// Opens oneDNN, and with it OpenMP's library. Functions of <oneapi/dnnl/dnnl.h> and <omp.h> may be
/// called once it has returned OK. Unavailable where there is none, or one that is older than what
/// the build saw. Thread-safe; opened once.
absl::Status OpenOneDnn();

}  // namespace coconet
