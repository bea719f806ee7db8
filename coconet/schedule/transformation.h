#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"

namespace coconet {

// Transformations are data (schedule.h applies them). Their node ids are those of the graph of the
// schedule that they are applied to.

/// Lets each rank work on its slice instead of all ranks on the whole tensor:
///   y = all_reduce(x)       -->  t = reduce_scatter(x, dim)
///                                y = all_gather(t)
///   y = sum(f(x)), scalar   -->  y = all_reduce(sum, sum(f(shard(x, dim))))
///                                (x replicated, f elementwise; all folds)
///   y = send(x)             -->  y = all_gather(send(shard(x, dim)))
///                                (x replicated)
struct Split {
  NodeId node = -1;
  int dim = Layout::kFlat;
  bool operator==(const Split&) const = default;
};

/// Communicates within nodes, across nodes, and within nodes again, instead of over all ranks at
/// once:
///   y = all_reduce(x)           -->  t = reduce_scatter(x, dim, node)
///                                    u = all_reduce(t, across)
///                                    y = all_gather(u, node)
///   y = reduce_scatter(x, dim)  -->  t = reduce_scatter(x, dim, node)
///                                    y = reduce_scatter(t, dim, across)
///   y = all_gather(x)           -->  t = all_gather(x, across)
///                                    y = all_gather(t, node)
///                                    (x sliced over dim)
struct SplitByNode {
  NodeId node = -1;
  int dim = Layout::kFlat;
  bool operator==(const SplitByNode&) const = default;
};

/// Moves all computation that can be done on slices from after an AllGather to before it:
///   y = all_gather(x); z = f(y, r)  -->  zs = f(x, r); z = all_gather(zs)
///   y = all_gather(x); z = sum(y)   -->  z = all_reduce(sum, sum(x))
/// The region that moves is the maximal one of elementwise operations, folds, matrix products and
/// sends fed by the gather. Each value that leaves the region (for an update of a Replicated state,
/// an output, or any other operation) gets a gather. A value narrowed by a cast is gathered narrow.
struct Reorder {
  NodeId all_gather = -1;
  bool operator==(const Reorder&) const = default;
};

/// u = update(state: Auto, all_gather(x))  -->  u = update(state: Sliced, x)
/// The gather is dropped if nothing else needs its result, and else comes after the update.
struct Slice {
  NodeId state = -1;
  bool operator==(const Slice&) const = default;
};

/// Computes values again for some of the operations that take them, so that these neither wait for
/// the first computation nor need its results kept in memory until then:
///   y = f(x); u = g(y); v = h(y)  -->  y = f(x); u = g(y); v = h(f(cast(x)))
/// `nodes` (ascending) are elementwise operations; `users` (ascending) take the copies of them
/// instead. A cast of an operand to its own dtype tells the first operations of the copy from those
/// that they copy: equal operations are one. So there is one copy of an operation at most.
struct Recompute {
  std::vector<NodeId> nodes, users;
  bool operator==(const Recompute&) const = default;
};

/// Makes the nodes (ascending) one kernel. They contain all nodes or none of an existing kernel.
struct Fuse {
  std::vector<NodeId> nodes;
  bool operator==(const Fuse&) const = default;
};

/// Runs a chain of launches chunk by chunk: each takes the result of the one before it, and works
/// on one chunk while the one before it computes the next, so that communication overlaps
/// computation. Launches are named by their first nodes.
struct Overlap {
  std::vector<NodeId> nodes;
  bool operator==(const Overlap&) const = default;
};

/// Reduces the operands of these AllReduces (ascending) together, by one call of a library, once
/// the last of them is there.
struct Bucket {
  std::vector<NodeId> nodes;
  bool operator==(const Bucket&) const = default;
};

/// Issues the launches, named by their first nodes, in this order, as far as buckets and overlaps
/// leave a choice. Launches on another lane (jit/config/lanes.h) keep this order there.
struct Order {
  std::vector<NodeId> nodes;
  bool operator==(const Order&) const = default;
};

using Transformation =
    std::variant<Split, SplitByNode, Reorder, Slice, Recompute, Fuse, Overlap, Bucket, Order>;

/// The nodes that a transformation names.
std::vector<NodeId> NamedNodes(const Transformation& t);

/// "%2 %5 %6"
std::string NodeList(const std::vector<NodeId>& nodes);

/// "split(%4, flat)", "split_by_node(%4, 0)", "reorder(%6)", "slice(%1)", "recompute(%2 %3 for
/// %7)", "fuse(%2 %5 %6)", "overlap(%2 %5)", "bucket(%4 %9)", "order(%2 %5 %4)": prints and parses
/// back.
std::string Text(const Transformation& t);
std::string TraceText(const std::vector<Transformation>& trace);  // joined by "; "
absl::StatusOr<std::vector<Transformation>> ParseTrace(absl::string_view text);

/// "split(%3, flat): ...": the condition that failed. FailedPrecondition.
template <class... Parts>
absl::Status Refused(const Transformation& t, const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(Text(t), ": ", parts...));
}

}  // namespace coconet
