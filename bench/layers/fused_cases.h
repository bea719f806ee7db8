#pragma once

#include <vector>

#include "bench/harness/machine.h"
#include "coconet/base/dtype.h"

namespace coconet::bench {

// What `fused` measures besides tables of embeddings, in kF32 or kBF16.

/// A product of few rows and what follows it, as in the workload decode, with weights that come
/// from memory, and weights that fit a cache. "bound" is the larger of the times that loading the
/// weights and multiplying take.
std::vector<RowTask> DecodeTasks(int ranks, DType dtype);

/// A layer of a mixture of experts on two nodes of one rank: the workload moe, with a group of
/// tokens per rank, with few and many experts, chosen equally or not.
std::vector<RowTask> MoeTasks(int ranks, DType dtype);

}  // namespace coconet::bench
