#ifndef COCONET_SCHEDULE_REWRITES_H_
#define COCONET_SCHEDULE_REWRITES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

// The transformations one by one: what Apply dispatches to. Graphs are canonical and infer; node
// ids are valid. Results infer, but are not yet canonical.

absl::StatusOr<Graph> ApplySplit(const Graph& g, const Split& split);
absl::StatusOr<Graph> ApplySplitByNode(const Graph& g, const SplitByNode& split);
absl::StatusOr<Graph> ApplyReorder(const Graph& g, const Reorder& reorder);
absl::StatusOr<Graph> ApplySlice(const Graph& g, const Slice& slice);

/// Replaces each Shard of a value, part of whose operands is gathered from slices cut alike, by
/// computation on these slices. So what a schedule does with own parts does not depend on the order
/// of its splits.
absl::StatusOr<Graph> TakeSlicesAtHand(const Graph& g);

/// Appends what all ranks' parts of a tensor fold to, `part` being a rank's: fold, then all-reduce.
/// Parts of f16 and bf16 are summed in f32, since each would be rounded otherwise, at its own
/// magnitude.
NodeId FoldOverRanks(Graph& out, const Fold& fold, NodeId part, DType dtype);

/// The kernels after the fusion, ordered by first node.
absl::StatusOr<std::vector<std::vector<NodeId>>> ApplyFuse(
    const Graph& g, const std::vector<std::vector<NodeId>>& kernels, const Fuse& fuse);

/// "split(%3, flat): ...": the condition that failed.
template <class... Parts>
absl::Status Refused(const Transformation& t, const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(Text(t), ": ", parts...));
}

}  // namespace coconet

#endif  // COCONET_SCHEDULE_REWRITES_H_
