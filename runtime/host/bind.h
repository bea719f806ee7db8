#ifndef COCONET_RUNTIME_HOST_BIND_H_
#define COCONET_RUNTIME_HOST_BIND_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/host/executor.h"
#include "runtime/node/plan_layout.h"
#include "runtime/rank.h"

namespace coconet {

/// Fills in `parts.calls` and `parts.params` from the other parts. NotFound for a kernel that
/// `module` lacks; Unimplemented for a matrix product that the library cannot compute.
absl::Status Resolve(const Module& module, absl::Span<Memory* const> buffers,
                     const SyncLayout& layout, Executor::Parts& parts);

}  // namespace coconet

#endif  // COCONET_RUNTIME_HOST_BIND_H_
