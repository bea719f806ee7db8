#ifndef COCONET_SCHEDULE_REWRITES_H_
#define COCONET_SCHEDULE_REWRITES_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

// The transformations one by one: what Apply dispatches to. Graphs are canonical and infer; node
// ids are valid. Results infer, but are not yet canonical.

absl::StatusOr<Graph> ApplySplit(const TypedGraph& program, const Split& split);
absl::StatusOr<Graph> ApplySplitByNode(const TypedGraph& program, const SplitByNode& split);
absl::StatusOr<Graph> ApplyReorder(const TypedGraph& program, const Reorder& reorder);
absl::StatusOr<Graph> ApplySlice(const TypedGraph& program, const Slice& slice);

/// Replaces each Shard of a value, part of whose operands is gathered from slices cut alike, by
/// computation on these slices. So what a schedule does with own parts does not depend on the order
/// of its splits.
absl::StatusOr<Graph> TakeSlicesAtHand(Graph graph);

/// Appends the fold of a tensor from each rank's `part` of it: fold, then all-reduce.
/// Parts of f16 and bf16 are summed in f32, since each would be rounded otherwise, at its own
/// magnitude.
NodeId FoldOverRanks(Graph& out, const Fold& fold, NodeId part, DType dtype);

/// The kernels after the fusions, one after the other, ordered by first node. They may wait for
/// each other in a cycle.
absl::StatusOr<Kernels> ApplyFuses(const Schedule& s, absl::Span<const Fuse> fuses);

}  // namespace coconet

#endif  // COCONET_SCHEDULE_REWRITES_H_
