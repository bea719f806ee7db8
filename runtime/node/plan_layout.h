#ifndef COCONET_RUNTIME_NODE_PLAN_LAYOUT_H_
#define COCONET_RUNTIME_NODE_PLAN_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/mesh.h"
#include "runtime/plan.h"
#include "runtime/rank.h"

namespace coconet {

/// OK when `plan` is well formed for a world of this mesh, and `buffers` are what it asks for.
absl::Status Validate(const Plan& plan, absl::Span<Memory* const> buffers, const Mesh& mesh);

/// How many elements of its operands a collective touches, from the first to the last.
struct OperandElements {
  int64_t in = 0, out = 0;
};
OperandElements ElementsOf(const Plan& plan, const CollectiveStep& step);

/// Where the flags and counters of a bound plan lie: behind the control in shared memory, or in
/// local memory.
struct SyncLayout {
  std::vector<int64_t> offsets;  // by buffer; -1 for those that are not kSync
  int64_t shared_bytes = 0;      // the control's, which comes first, included
  int64_t local_bytes = 0;
  bool waits = false;  // for peers: then the shared part must be symmetric
};
SyncLayout LayoutOf(const Plan& plan, int64_t control_bytes);

}  // namespace coconet

#endif  // COCONET_RUNTIME_NODE_PLAN_LAYOUT_H_
