#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "runtime/plan.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// Collective. "copy": this rank's part of a copy of `bytes` bytes by all ranks together, from one
/// place of its memory to another: by the driver within a GPU, by one core on hosts.
absl::StatusOr<Contender> MakeCopy(Rank& rank, int64_t bytes);

/// Collective. "product": a ProductStep by the library that plans use, and nothing else, on memory
/// of its own. OutOfRange: the library has no such candidate.
absl::StatusOr<Contender> MakeProduct(Rank& rank, const GemmStep& step);

/// Adds what GPU times depend on: "gpu", "arch", "multiprocessors", "memory_bytes", "l2_bytes", and
/// the versions "driver" and "nvrtc".
void AddGpu(Row& row);

}  // namespace coconet::bench
