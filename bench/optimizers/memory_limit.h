#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/rounds.h"
#include "bench/optimizers/cell.h"

namespace coconet::bench {

/// Contenders "limit", of which the fastest counts: kernels with plain and with streaming stores
/// that take the time of the loads and stores of one rank's share of a fused step: as many streams
/// and bytes, in this rank's own memory, without waits and with next to no arithmetic. Run on all
/// ranks at once, they show the limit of the machine's memory. LAMB goes twice over its states and
/// weights, because a tensor's norms are known only after the first pass; caching between the
/// passes is not modelled. Many tensors count as one of as many elements. InvalidArgument for a
/// number of ranks without a kernel, and for LAMB of a dtype other than f32.
absl::StatusOr<std::vector<Contender>> MemoryLimit(const Cell& cell, int ranks);

/// Bytes that a fused step loads and stores on one rank.
int64_t StepBytes(const Cell& cell, int ranks);

}  // namespace coconet::bench
