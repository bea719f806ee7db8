#ifndef COCONET_SCHEDULE_LAUNCHES_H_
#define COCONET_SCHEDULE_LAUNCHES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "coconet/ir/typed_graph.h"

namespace coconet {

/// Moves data between ranks.
bool Communicates(const Graph& g, NodeId id);

/// Can be a generated kernel; the rest (matrix products, rooted and point-to-point communication)
/// are launches of libraries.
bool IsKernelWork(const Graph& g, NodeId id);

/// Can be part of a generated kernel: kernel work, and sends of what the kernel computes.
bool JoinsKernels(const Graph& g, NodeId id);

/// Operands whose values a node takes: all; of an update its value, not its state.
absl::Span<const NodeId> ValueOperands(const Graph& g, NodeId id);

/// By node: how many collectives, itself included, and folds to scalars lie before it on the
/// longest path; as late as its users allow, so that what only prepares a computation behind a
/// collective counts as part of that.
std::vector<int> Levels(const TypedGraph& program);

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
/// they are recomputed wherever they are needed. A scalar that a collective takes is a launch,
/// since the collective needs it in memory; so is one that a state is updated with and that takes
/// another updated state's value before the step, since that may take this one's.
struct Launches {
  std::vector<Launch> list;  // ordered by first node
  std::vector<int> of;       // by node: its launch; -1: none

  int size() const { return static_cast<int>(list.size()); }
  const Launch& operator[](int launch) const { return list[launch]; }
};

/// `kernels` are disjoint, each ascending.
Launches FindLaunches(const TypedGraph& program, const Kernels& kernels);

/// The launches with those of each class as one: into[launch] is the launch that it joins, itself
/// where it joins none. What a launch joins joins none.
Launches Joined(const Launches& launches, const std::vector<int>& into);

/// Launches in an order that they can run in: of those that can run next the first by `rank`, then
/// by number. Shorter than the list where launches wait for each other in a cycle.
std::vector<int> InOrder(const std::vector<Launch>& launches, const std::vector<int>& rank);
/// The same by number alone.
std::vector<int> InOrder(const std::vector<Launch>& launches);

/// By launch, for InOrder: level by level (`levels` by node), collectives first.
std::vector<int> RanksByLevel(const Graph& g, const Launches& launches,
                              const std::vector<int>& levels);

/// Launches other than `inside` that must come both after and before it, ascending; empty where no
/// cycle goes through it.
std::vector<int> LaunchesWithin(const std::vector<Launch>& launches, int inside);

/// Bytes that a launch reads and writes, of whole tensors and of all tensors of a list; a rank has
/// its part of those that are sliced. Sizes that are not bound count as 1.
struct Traffic {
  int64_t read = 0;     // inputs, states, and values of other launches
  int64_t written = 0;  // updates, outputs, and values that other launches take
};
/// By launch.
std::vector<Traffic> TrafficOf(const TypedGraph& program, const Launches& launches);

}  // namespace coconet

#endif  // COCONET_SCHEDULE_LAUNCHES_H_
