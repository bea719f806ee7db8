#ifndef COCONET_SCHEDULE_STEPS_H_
#define COCONET_SCHEDULE_STEPS_H_

#include <vector>

#include "coconet/ir/graph.h"

namespace coconet {

/// Moves data between ranks.
bool Communicates(const Graph& g, NodeId id);

/// Can be a generated kernel; the rest (matrix products, rooted and point-to-point communication)
/// are launches of libraries.
bool IsKernelWork(const Graph& g, NodeId id);

/// Can be part of a generated kernel: kernel work, and sends of what the kernel computes.
bool JoinsKernels(const Graph& g, NodeId id);

/// Operands whose values a node takes: all; of an update its value, not its state.
std::vector<NodeId> ValueOperands(const Graph& g, NodeId id);

/// By node: what a use of it means. A use of an update means the value that it assigns.
std::vector<NodeId> AssignedValues(const Graph& g);

/// By node: how many collectives, itself included, and folds to scalars lie before it on the
/// longest path; as late as its users allow, so that what only prepares a computation behind a
/// collective counts as part of that.
std::vector<int> Stages(const Graph& g);

/// The launches of a schedule, and what must come before what:
/// - a producer before its consumers; an update's value is produced by the value's own step;
/// - every reader of a state's old value before the step that updates the state.
///
/// Declarations, constants, the number of ranks and computations on scalars belong to no step: they
/// are recomputed wherever they are needed. A scalar that a collective takes is a step, since the
/// collective needs it in memory; so is one that a state is updated with and that takes another
/// updated state's value before the step, since that may take this one's.
struct Steps {
  std::vector<std::vector<NodeId>> nodes;  // of each step, ascending; steps ordered by first node
  std::vector<int> of;                     // by node; -1: in no step
  std::vector<std::vector<int>> after;     // by step: the steps that must come before it, ascending
};

/// `kernels` are disjoint.
Steps FindSteps(const Graph& g, const std::vector<std::vector<NodeId>>& kernels);

/// Steps in an order that they can run in: of those that can run next the first by `rank`, then by
/// number. Shorter than the list of steps when there is a cycle.
std::vector<int> InOrder(const Steps& steps, const std::vector<int>& rank);

/// Steps outside of step `inside` that must come both after and before it, ascending: none when the
/// steps are free of cycles through it.
std::vector<int> StepsWithin(const Steps& steps, int inside);

}  // namespace coconet

#endif  // COCONET_SCHEDULE_STEPS_H_
