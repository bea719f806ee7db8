#pragma once

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

// The functions that Apply dispatches to, one per transformation. They require canonical graphs
// whose types can be inferred, and valid node ids. The types of their results can be inferred; the
// results are not yet canonical.

absl::StatusOr<Graph> ApplySplit(const TypedGraph& program, const Split& split);
absl::StatusOr<Graph> ApplySplitByNode(const TypedGraph& program, const SplitByNode& split);
absl::StatusOr<Graph> ApplyReorder(const TypedGraph& program, const Reorder& reorder);
absl::StatusOr<Graph> ApplySlice(const TypedGraph& program, const Slice& slice);

/// The graph after a Recompute.
struct Recomputed {
  Rewritten rewritten;
  std::map<NodeId, NodeId> copies;  // by node that is computed again
  std::vector<NodeId> casts;        // that tell copies from what they copy
};
absl::StatusOr<Recomputed> ApplyRecompute(const TypedGraph& program, const Recompute& recompute);

/// Replaces each Shard of a value by computation on slices if some of the value's operands are
/// gathered from slices of the same shape. So the result of several splits does not depend on their
/// order.
absl::StatusOr<Graph> TakeSlicesAtHand(Graph graph);

/// Appends the fold of a tensor of which each rank has a `part`: the fold of the part, then an
/// AllReduce. Sums of f16 and bf16 parts are kept in f32, since each part would otherwise be
/// rounded at its own magnitude.
NodeId FoldOverRanks(Graph& out, const Fold& fold, NodeId part, DType dtype);

/// The kernels after all fusions, ordered by first node. They may depend on each other in a cycle.
absl::StatusOr<Kernels> ApplyFuses(const Schedule& s, absl::Span<const Fuse> fuses);

/// The conditions of Apply for a bucket and for an order.
absl::Status CheckBucket(const Schedule& s, const Bucket& bucket);
absl::Status CheckOrder(const Schedule& s, const Order& order);
/// Refuses an overlap with a launch that is in a bucket.
absl::Status CheckNotInBucket(const Schedule& s, const Overlap& overlap);

}  // namespace coconet
