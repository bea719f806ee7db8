#ifndef COCONET_RUNTIME_NCCL_NCCL_LIBRARIES_OVER_H_
#define COCONET_RUNTIME_NCCL_NCCL_LIBRARIES_OVER_H_

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/stream_library.h"
#include "runtime/nccl/nccl_api.h"

namespace coconet {

/// OpenNcclLibraries over a given NCCL, which must outlive the result, or the reason why
/// there is none.
absl::StatusOr<StreamLibraries> OpenNcclLibrariesOver(const absl::StatusOr<const NcclApi*>& nccl,
                                                      const StreamLibraryTerms& terms);

}  // namespace coconet

#endif  // COCONET_RUNTIME_NCCL_NCCL_LIBRARIES_OVER_H_
