#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/mesh.h"
#include "runtime/plan.h"
#include "runtime/rank.h"

namespace coconet {

/// OK when `plan` is well formed for a world of this mesh and `buffers` fit
/// it; else InvalidArgument.
absl::Status Validate(const Plan& plan, absl::Span<Memory* const> buffers, const Mesh& mesh);

/// Elements from the first to the last one that a collective touches, per operand.
struct OperandElements {
  int64_t in = 0, out = 0;
};
OperandElements ElementsOf(const Plan& plan, const CollectiveStep& step);

/// Bytes behind each buffer of flags or counters that no step may write.
inline constexpr int64_t kSyncGuardBytes = 1024;

/// The places of a bound plan's flags and counters, each with kSyncGuardBytes behind: in shared
/// memory behind the Control, or in local memory.
struct SyncLayout {
  std::vector<int64_t> offsets;  // bytes, by buffer; -1: not a kSync buffer
  int64_t shared_bytes = 0;      // includes the Control, which comes first
  int64_t local_bytes = 0;
  bool waits = false;  // a kernel waits for peers, so that the shared part must be symmetric
};
SyncLayout LayoutOf(const Plan& plan, int64_t control_bytes);

}  // namespace coconet
