#ifndef COCONET_RUNTIME_NCCL_NCCL_OPENING_H_
#define COCONET_RUNTIME_NCCL_NCCL_OPENING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/driver/stream_library.h"
#include "runtime/mesh.h"
#include "runtime/nccl/nccl_api.h"
#include "runtime/nccl/nccl_link.h"

namespace coconet {

/// The communicators of a rank.
struct NcclOpening {
  std::vector<std::shared_ptr<NcclLink>> links;  // by lane and group
  std::string note;                              // why there are none, on all ranks; "": there are
};

/// Collective: makes a communicator per lane for each of this rank's `groups` (equally many on
/// every rank), one after the other, until one fails on some rank. Returns an error only if the
/// exchange fails.
absl::StatusOr<NcclOpening> OpenNcclLinks(const NcclApi& nccl, const StreamLibraryTerms& terms,
                                          const std::vector<Members>& groups, int lanes);

}  // namespace coconet

#endif  // COCONET_RUNTIME_NCCL_NCCL_OPENING_H_
