#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/rows_in_use.h"

namespace coconet {

/// A step of a plan before code generation: a kernel of some nodes, or a collective or matrix
/// product that is left to a library.
struct Unit {
  std::vector<NodeId> nodes;  // ascending; Updates and Outputs stored by it included
  bool library =
      false;  // one collective or matrix product by a library, and at most one store of its result
  std::vector<int> after;  // units that must be done before it begins
};

/// A bound schedule cut into units, in execution order: producers before consumers, readers of a
/// state's old value before its update. Some may run beside others (lanes.h).
///
/// Constants and 0-dimensional arithmetic belong to no unit: they are recomputed in each
/// kernel that needs them ("scalars"), unless a collective reads them from memory.
struct Units {
  TypedGraph program;
  std::vector<Unit> units;
  std::vector<int> unit_of;  // node -> index in units, -1: in none
  int tensors = 0;           // of a list; the graph is then the program of one of them
  std::vector<bool> each;    // by node: there is one per tensor; all false without a list
  /// The schedule's overlaps: units [first, last] one after the other, in the order of work.
  struct Chain {
    int first = 0, last = 0;
    std::vector<NodeId> overlap;  // first nodes, as in the schedule
  };
  std::vector<Chain> chains;
  std::vector<RowsInUse> rows;  // by node
  bool concurrent = false;      // Config::concurrent
  /// AllReduces that are done together (Config::bucket): units [first, last], more than one.
  std::vector<std::pair<int, int>> buckets;

  const Graph& graph() const { return program.graph(); }
  const TensorType& type(NodeId id) const { return program.type(id); }
  /// The node whose value `id` stands for (TypedGraph::values).
  NodeId Value(NodeId id) const { return program.value(id); }
  bool IsScalar(NodeId id) const;  // recomputed where needed, in no unit
  /// Whether the unit, a kernel, computes `id` element by element in its phases; its matrix
  /// products are in memory by then.
  bool ComputesInPhases(int unit, NodeId id) const;
  /// The values that node `id`, computed in `unit`, reads from memory: inputs, states, and values
  /// of other units, seen through scalars. Ascending.
  std::set<NodeId> Reads(NodeId id, int unit) const;
  /// Whether the value of `id` is in memory, for the whole step, when `unit` begins: an input, or a
  /// result of an earlier unit outside the chain of `unit`.
  bool IsThere(NodeId id, int unit) const;
  /// The counts of the rows in use of a matrix product that a library computes in `unit`, if they
  /// are in memory; else none.
  RowsInUse RowsOfProduct(NodeId product, int unit) const;
  /// The counts before an AllToAll with rows not in use that a library does, if these and the
  /// counts after it are in memory; else -1.
  NodeId CountsBeforeAllToAll(NodeId id) const;
};

/// Which of the collectives that a kernel could do alone are left to a library: none; those over
/// all ranks, if kernels reach the ranks of one node of several; all.
enum class LibraryDoes : uint8_t { kNone, kOverAllRanks, kAll };

/// Fields of Config.
struct Concurrency {
  bool concurrent = false;
  int64_t bucket = 0;
};
/// Cuts a bound, canonical schedule into units. `library`: the ungrouped collectives that are left
/// to the library; others are kernels. FailedPrecondition when the kernels depend on each other in
/// a cycle. `tensors` and `each` as in Units.
absl::StatusOr<Units> CutIntoUnits(const Schedule& schedule, LibraryDoes library,
                                   const Concurrency& concurrency = {}, int tensors = 0,
                                   std::vector<bool> each = {});

/// Whether a library does the collective `id`, if it is alone in a launch.
bool DoneBy(LibraryDoes library, const Graph& g, NodeId id);

template <class T>
bool Is(const Graph& g, NodeId id) {
  return As<T>(g, id) != nullptr;
}
bool IsStore(const Graph& g, NodeId id);  // Update or Output
/// The operand that an Update or Output stores.
NodeId StoredOperand(const Graph& g, NodeId store);

}  // namespace coconet
