#ifndef COCONET_SCHEDULE_KERNEL_PHASES_H_
#define COCONET_SCHEDULE_KERNEL_PHASES_H_

#include <map>
#include <vector>

#include "coconet/ir/typed_graph.h"

namespace coconet {

/// The elements that a kernel goes over: those of its largest tensors. Where it folds rows also the
/// rows: the elements of tensors whose last `row_dims` extents are 1 instead.
struct IterationSpace {
  Shape shape;
  int row_dims = 0;
  Shape rows() const;  // the shape of what has one element per row
};

/// `kernel` of any nodes.
IterationSpace SpaceOf(const TypedGraph& program, const std::vector<NodeId>& kernel);

/// A Fold over the last dimensions, not over all.
bool FoldsLastDims(const TypedGraph& program, NodeId id);
/// One with one result per row, by one pass over elements of one rank: not of rows without
/// elements, nor of rows that are cut and lie on several ranks.
bool FoldsRows(const TypedGraph& program, NodeId id);
/// A Fold to a scalar.
bool FoldsAll(const TypedGraph& program, NodeId id);

/// The fold to a scalar that AllReduce `id` sums up over ranks as it folds, over all tensors too
/// where a Total is between them; -1: none.
NodeId FoldBelow(const TypedGraph& program, NodeId id);

/// One pass over a kernel's elements.
///   On slices: for each element of this rank's slice, reduce the operands of the ReduceScatters
///     over all ranks, compute, store, and push the operands of the AllGathers to every rank.
///   On whole tensors: for each element, read what the AllGathers brought (as soon as it has come),
///     reduce the operands of the AllReduces over all ranks, compute, and store.
/// Both add up the operands of folds to scalars, and push the operands of Sends to the rank at this
/// place of the next stage. A stored value is computed from what its phase loads, so a member may
/// be evaluated in several phases, or more often; values that an earlier phase stored are loaded.
struct KernelPhase {
  bool on_slices = false;
  int round = 0;  // folds to scalars, in this domain, that must be known
  /// Updates, outputs, and values that other launches take and no update here keeps.
  std::vector<NodeId> stores;
  std::vector<NodeId> gathers;
  std::vector<NodeId> sends;
  std::vector<NodeId> folds;      // to scalars
  std::vector<NodeId> evaluated;  // members, ascending; collectives are loads
};

/// The phases of one launch of a kernel in their order, those on slices first. After a
/// phase with folds all blocks, and all ranks where an AllReduce of the kernel takes them, wait for
/// each other. An update that assigns an AllGather or a Send of the kernel is no store, nor is an
/// output of a Send: the push goes into that memory.
struct KernelPhases {
  std::vector<KernelPhase> phases;
  /// Members that are scalars and needed in memory: stored when the phases have ended.
  std::vector<NodeId> scalars;
  /// A member that needs a later phase's folds, or gathered elements, too early; -1: none.
  NodeId unready = -1;
  /// The phase that stores each value.
  std::map<NodeId, int> stored_in;

  /// The phase that stores the value of node `id` into memory; -1: none.
  int StoredIn(NodeId id) const {
    const auto phase = stored_in.find(id);
    return phase == stored_in.end() ? -1 : phase->second;
  }
};

/// `kernel` ascending: any set of nodes that makes one iteration space, legal or not.
KernelPhases PhasesOf(const TypedGraph& program, const std::vector<NodeId>& kernel);

/// States whose value before the step one of the nodes reads directly, ascending.
std::vector<NodeId> StatesRead(const Graph& g, const std::vector<NodeId>& nodes);

}  // namespace coconet

#endif  // COCONET_SCHEDULE_KERNEL_PHASES_H_
