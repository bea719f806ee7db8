#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "coconet/ir/typed_graph.h"

namespace coconet {

template <class T>
bool Is(const Graph& g, NodeId id) {
  return As<T>(g, id) != nullptr;
}

/// An Update or an Output.
bool IsStore(const Graph& g, NodeId id);
/// The operand that an Update or Output stores.
NodeId StoredOperand(const Graph& g, NodeId store);

/// Whether a node moves data between ranks.
bool Communicates(const Graph& g, NodeId id);

/// Whether a generated kernel can do it; libraries do the rest (matrix products, rooted and
/// point-to-point communication).
bool IsKernelWork(const Graph& g, NodeId id);

/// Whether a generated kernel can contain it: kernel work, and sends of what the kernel computes.
bool JoinsKernels(const Graph& g, NodeId id);

/// The operands whose values a node takes: all of them, but of an update only the assigned value,
/// not the state.
absl::Span<const NodeId> ValueOperands(const Graph& g, NodeId id);

/// Returns by node the number of collectives (itself included) and folds to scalars on the longest
/// path to it. A node gets the highest level that its users allow, so that an operation that only
/// prepares a computation behind a collective has that computation's level.
std::vector<int> Levels(const TypedGraph& program);
/// The same with other steps of a path counted: those from a value to a user of it for which
/// `later` returns true.
std::vector<int> LevelsOf(const TypedGraph& program,
                          const std::function<bool(NodeId value, NodeId id)>& later);

using Kernels = std::vector<std::vector<NodeId>>;

/// A kernel, or one operation alone.
struct Launch {
  std::vector<NodeId> nodes;  // ascending
  std::vector<int> after;     // launches that must come before it, ascending
  bool operator==(const Launch&) const = default;
};

/// The launches of a schedule, and what must come before what:
/// - a producer before its consumers; an update's value is produced by the value's own launch;
/// - every reader of a state's old value before the launch that updates the state.
///
/// Declarations, constants, the number of ranks and computations on scalars belong to no launch:
/// they are recomputed wherever they are needed. Three kinds of scalars are launches: one that a
/// collective takes, since the collective needs it in memory; one that is assigned to a state and
/// computed from the old value of another updated state, since that state's update may need the old
/// value of this state; and one that several operations take and that more than 64 operations on
/// scalars compute, unless a launch would then wait for itself.
struct Launches {
  std::vector<Launch> list;  // ordered by first node
  std::vector<int> of;       // by node: its launch; -1: none

  int size() const { return static_cast<int>(list.size()); }
  const Launch& operator[](int launch) const { return list[launch]; }
};

/// `kernels` are disjoint, each ascending.
Launches FindLaunches(const TypedGraph& program, const Kernels& kernels);

/// Merges launches: `into[launch]` is the launch that it is merged into, or itself. A launch that
/// others are merged into is not merged itself.
Launches Joined(const Launches& launches, const std::vector<int>& into);

/// A topological order of the launches; of those that can run next, the one with the smallest
/// `rank` comes first, then the one with the smallest number. Shorter than the list if launches
/// depend on each other in a cycle.
std::vector<int> InOrder(const std::vector<Launch>& launches, const std::vector<int>& rank);
/// The same, ordered by number alone.
std::vector<int> InOrder(const std::vector<Launch>& launches);

/// The `rank` of each launch for InOrder: level by level (`levels` by node), collectives first.
std::vector<int> RanksByLevel(const Graph& g, const Launches& launches,
                              const std::vector<int>& levels);

/// The other launches on a cycle through launch `inside`, ascending; empty if there is no cycle.
std::vector<int> LaunchesWithin(const std::vector<Launch>& launches, int inside);

/// By launch: whether it comes before or after launch `of` in every order, or is launch `of`.
std::vector<bool> BeforeOrAfter(const std::vector<Launch>& launches, int of);

/// Bytes that a launch reads and writes, counted over whole tensors (a rank moves its slice of
/// sliced ones) and over all tensors of a list. Sizes that are not bound count as 1.
struct Traffic {
  int64_t read = 0;     // inputs, states, and values of other launches
  int64_t written = 0;  // updates, outputs, and values that other launches take
};
/// By launch.
std::vector<Traffic> TrafficOf(const TypedGraph& program, const Launches& launches);

}  // namespace coconet
