#pragma once

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/stream_library.h"

namespace coconet {

/// OpenStreamLibraries by NCCL, opened at run time, for ranks that are threads or processes, on one
/// node or several.
absl::StatusOr<StreamLibraries> OpenNcclLibraries(const StreamLibraryTerms& terms);

}  // namespace coconet
