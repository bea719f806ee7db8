#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "coconet/ir/graph.h"

namespace coconet {

// Programs that a machine is calibrated by: bound, and one launch each.

/// Kernels: some of each kind of Effort, alone and in chains, over sizes that fit each level of the
/// caches, and kernels of training steps, some of them drawn.
absl::StatusOr<std::vector<Graph>> KernelProbes();

/// Matrix products of f32 in sizes of layers and of heads of attention.
absl::StatusOr<std::vector<Graph>> ProductProbes();
/// One product of a shape.
absl::StatusOr<Graph> ProductProbe(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k,
                                   bool transpose_a, bool transpose_b);

/// Collectives over all ranks.
absl::StatusOr<std::vector<Graph>> CollectiveProbes();

/// A kernel and an AllReduce, each independent of the other.
absl::StatusOr<Graph> ProbeOfBoth(int64_t elements);

}  // namespace coconet
