#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "coconet/schedule/schedule.h"
#include "jit/launches/rows_in_use.h"

namespace coconet {

/// A launch as the ranks of a target run it: a kernel, or one collective or matrix product by a
/// library. Its nodes include the updates and outputs that it stores, at most one of these for a
/// library.
struct PlacedLaunch : Launch {
  bool library = false;  // a library does it

  // ---- When it runs (lanes.h)
  int lane = 0;
  /// It runs on lane 0, beside nothing on lane 1.
  bool alone = false;
  /// It may still run when the step has ended and the next one has begun. It is one of the last of
  /// lane 1, no launch waits for it, and it neither reads inputs nor writes outputs, which belong
  /// to the host between steps.
  bool outlasts = false;
  /// The last launch of the other lane that must be done before it begins; -1: none. Waits
  /// within an overlap are not counted.
  int awaits = -1;

  // ---- Its part of the plan, set by Lower (jit/lower/lower.h)
  int begin = 0, end = 0;  // steps
  /// The buffers of values that it reads, or that it computes and stores, when its steps are done:
  /// by node, an Update or an Output for what is stored there. Values that it reads are those of
  /// inputs and states (before the step) and of other launches.
  std::map<NodeId, int> reads, writes;
};

/// A bound schedule cut into launches, in execution order: producers before consumers, readers of a
/// state's old value before its update. Some may run beside others.
///
/// Constants and 0-dimensional arithmetic belong to no launch: they are recomputed in each
/// kernel that needs them ("scalars"), unless a collective reads them from memory.
struct PlacedLaunches {
  TypedGraph program;
  std::vector<PlacedLaunch> list;
  std::vector<int> of;     // by node: its launch, -1: none
  int tensors = 0;         // of a list; the graph is then the program of one of them
  std::vector<bool> each;  // by node: there is one per tensor; all false without a list
  /// The schedule's overlaps: launches [first, last] one after the other, in the order of work.
  struct Chain {
    int first = 0, last = 0;
    std::vector<NodeId> overlap;  // first nodes, as in the schedule
  };
  std::vector<Chain> chains;
  std::vector<RowsInUse> rows;  // by node
  /// AllReduces that are done together (Config::bucket): launches [first, last], more than one.
  std::vector<std::pair<int, int>> buckets;

  int size() const { return static_cast<int>(list.size()); }
  PlacedLaunch& operator[](int launch) { return list[launch]; }
  const PlacedLaunch& operator[](int launch) const { return list[launch]; }
  const Graph& graph() const { return program.graph(); }
  const TensorType& type(NodeId id) const { return program.type(id); }
  /// The node whose value `id` stands for (TypedGraph::values).
  NodeId Value(NodeId id) const { return program.value(id); }
  bool IsScalar(NodeId id) const;  // recomputed where needed, in no launch
  /// Whether the launch, a kernel, computes `id` element by element in its phases; its matrix
  /// products are in memory by then.
  bool ComputesInPhases(int launch, NodeId id) const;
  /// The values that node `id`, computed in `launch`, reads from memory: inputs, states, and values
  /// of other launches, seen through scalars. Ascending.
  std::set<NodeId> Reads(NodeId id, int launch) const;
  /// Whether the value of `id` is in memory, for the whole step, when `launch` begins: an input, or
  /// a result of an earlier launch outside the chain of `launch`.
  bool IsThere(NodeId id, int launch) const;
  /// The counts of the rows in use of each matrix of a product in `launch`, by a library or by the
  /// tiles of a kernel that goes on with them, if they are in memory; else none.
  RowsInUse RowsOfProduct(NodeId product, int launch) const;
  /// The counts before an AllToAll with rows not in use that a library does, if these and the
  /// counts after it are in memory; else -1.
  NodeId CountsBeforeAllToAll(NodeId id) const;
};

}  // namespace coconet
