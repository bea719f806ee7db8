#ifndef COCONET_SCHEDULE_SCHEDULE_H_
#define COCONET_SCHEDULE_SCHEDULE_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"

namespace coconet {

// ---- Transformations: data; applying one is a pure, total function ------------------------------
// Node ids refer to the graph of the schedule they are applied to.

/// What all ranks do with the whole tensor, each does with its slice:
///   y = all_reduce(x)           -->   t = reduce_scatter(x, dim); y = all_gather(t)
///   y = sum(f(x)), a scalar     -->   y = all_reduce(sum, sum(f(shard(x, dim))))     x replicated,
///   f elementwise; all folds y = send(x)                 -->   y = all_gather(send(shard(x, dim)))
///   x replicated
struct Split {
  NodeId node = -1;
  int dim = Layout::kFlat;
  bool operator==(const Split&) const = default;
};

/// Within nodes, across them, within nodes, where that is faster than over all ranks alike:
///   y = all_reduce(x)           -->   t = reduce_scatter(x, dim, node); u = all_reduce(t, across);
///   y = all_gather(u, node) y = reduce_scatter(x, dim)  -->   y = reduce_scatter(reduce_scatter(x,
///   dim, node), dim, across) y = all_gather(x)           -->   y = all_gather(all_gather(x,
///   across), node)       x sliced over dim
struct SplitByNode {
  NodeId node = -1;
  int dim = Layout::kFlat;
  bool operator==(const SplitByNode&) const = default;
};

/// Moves all computation that can be done on slices from after an AllGather to before it:
///   y = all_gather(x); z = f(y, r)   -->   zs = f(x, r); z = all_gather(zs)
///   y = all_gather(x); z = sum(y)    -->   z = all_reduce(sum, sum(x))
/// for the maximal region of elementwise operations, folds, matrix products and sends fed by the
/// gather; one gather per value that leaves the region (an update of a Replicated state, an output,
/// a use by anything else). A gather of a value narrowed by a cast crosses the link narrow.
struct Reorder {
  NodeId all_gather = -1;
  bool operator==(const Reorder&) const = default;
};

/// u = update(state: Auto, all_gather(x))  -->  u = update(state: Sliced, x); the gather is dropped
/// when nothing else needs it, and put after the update when something does.
struct Slice {
  NodeId state = -1;
  bool operator==(const Slice&) const = default;
};

/// The nodes become one kernel. Node ids ascending; kernels that are already there are named whole,
/// or not at all.
struct Fuse {
  std::vector<NodeId> nodes;
  bool operator==(const Fuse&) const = default;
};

/// The launches that begin with these nodes, each of which takes what the one before it makes, run
/// chunk by chunk, so that each works on a chunk while the one before it makes the next, and
/// communication goes on beside computation.
struct Overlap {
  std::vector<NodeId> nodes;
  bool operator==(const Overlap&) const = default;
};

using Transformation = std::variant<Split, SplitByNode, Reorder, Slice, Fuse, Overlap>;

/// A program and what was done to it. `kernels` partitions some of the nodes: disjoint, each
/// ascending, ordered by first node; other operations are kernels or library calls of their own.
struct Schedule {
  Graph graph;
  std::vector<std::vector<NodeId>> kernels;
  std::vector<std::vector<NodeId>>
      overlaps;  // first nodes of the launches of each, in the order of work; disjoint
  std::vector<Transformation> trace;  // replays from the bare program; not part of the identity
};

/// The schedule of an untransformed (bound) program; canonicalises it.
absl::StatusOr<Schedule> InitialSchedule(const Graph& program);

/// Applies `t`, or says which condition failed at which operation (FailedPrecondition;
/// InvalidArgument for a stale node id). The result is canonical and infers. Conditions:
/// docs/schedules.md.
absl::StatusOr<Schedule> Apply(const Schedule& s, const Transformation& t);

/// "split(%4, flat)", "split_by_node(%4, 0)", "reorder(%6)", "slice(%1)", "fuse(%2 %5 %6)",
/// "overlap(%2 %5)": prints and parses back.
std::string Text(const Transformation& t);
std::string TraceText(const std::vector<Transformation>& trace);  // joined by "; "
absl::StatusOr<std::vector<Transformation>> ParseTrace(absl::string_view text);
absl::StatusOr<Schedule> Replay(const Graph& program, const std::vector<Transformation>& trace);

/// Canonical text: Print(graph) and one "kernel %a %b ..." line a kernel, "overlap %a %b ..." an
/// overlap. Equal text = equal schedule.
std::string Print(const Schedule& s);

/// In words, in execution order, e.g. "AR; C", "RS; fuse(C); AG p; slice m v", "fuse(RS, C, AG)".
std::string Describe(const Schedule& s);

/// The launches of a schedule in an order that they can run in: kernels, and other operations
/// alone. Declarations, constants and computations on scalars are in none: they are recomputed
/// wherever they are needed (a scalar that a collective takes is a launch). Dependencies:
/// docs/schedules.md.
std::vector<std::vector<NodeId>> ExecutionOrder(const Schedule& s);

struct DeriveOptions {
  int max_schedules = 1024;
  /// For worlds of several nodes with several ranks each: collectives are split by node, too, all
  /// of a program alike; and kernels hold no collective over all ranks, as they do not reach those
  /// of other nodes.
  bool by_node = false;
};

/// Every schedule reachable from the program by the transformations, deterministic order, simplest
/// first (those that overlap nothing before those that do), no duplicates (compared by canonical
/// text). The first is the plain program. Graph transformations come before fusions, and these
/// before overlaps, in every trace. Where that makes more than max_schedules (every place doubles
/// them), only the schedules that make each move wherever it can be made, and where these are too
/// many, too, those of them that make the kinds of moves in one order. ResourceExhausted when even
/// these are more.
absl::StatusOr<std::vector<Schedule>> Derive(const Graph& program,
                                             const DeriveOptions& options = {});

/// No kernel contains a collective: communication is left to whole-tensor collectives.
bool IsCommunicationUnfused(const Schedule& s);

/// What a careful user writes by hand: the program's own AllReduces, and its computations fused as
/// far as they can be without them. At least one derived schedule of every program is.
bool IsBaseline(const Schedule& s);

}  // namespace coconet

#endif  // COCONET_SCHEDULE_SCHEDULE_H_
