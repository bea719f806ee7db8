#ifndef COCONET_SCHEDULE_KERNEL_PHASES_H_
#define COCONET_SCHEDULE_KERNEL_PHASES_H_

#include <vector>

#include "coconet/ir/graph.h"
#include "coconet/ir/types.h"

namespace coconet {

/// What the elements of a kernel are: those of its largest tensors, and where it folds rows also
/// the rows, which are the elements of tensors whose last `row_dims` extents are 1 instead.
struct IterationSpace {
  Shape shape;
  int row_dims = 0;
  Shape rows() const;  // the shape of what there is one of a row
};

/// `kernel` of any nodes.
IterationSpace SpaceOf(const Graph& g, const std::vector<TensorType>& types,
                       const std::vector<NodeId>& kernel);

/// A Fold over the last dimensions, not over all.
bool FoldsLastDims(const Graph& g, const std::vector<TensorType>& types, NodeId id);
/// One whose result there is one of a row, by one pass over elements of one rank: rows of no
/// elements have none, and those that are cut lie on several ranks.
bool FoldsRows(const Graph& g, const std::vector<TensorType>& types, NodeId id);
/// A Fold to a scalar.
bool FoldsAll(const Graph& g, const std::vector<TensorType>& types, NodeId id);

/// The fold to a scalar that AllReduce `id` sums up over ranks as it folds, over all tensors too
/// where a Total is between them; -1: none.
NodeId FoldBelow(const Graph& g, const std::vector<TensorType>& types, NodeId id);

/// One pass over a kernel's elements:
///   on slices: reduce the operands of its ReduceScatters over all ranks, compute, store, and push
///   the operands of its
///              AllGathers to every rank, element by element of this rank's slice;
///   on whole:  compute and store element by element of the whole tensor, reading what the
///   AllGathers brought (as
///              soon as that element has come) and reducing the operands of its AllReduces over all
///              ranks.
/// Both add up the operands of folds to scalars, and push the operands of Sends to the rank at this
/// place of the next stage. A stored value is computed from what its phase loads, so a member may
/// be evaluated in several phases, or more often; values that an earlier phase stored are loaded.
struct KernelPhase {
  bool on_slices = false;
  int round = 0;  // folds to scalars, in this domain, that must be known
  std::vector<NodeId>
      stores;  // updates, outputs, and values that other steps take and no update here keeps
  std::vector<NodeId> gathers;
  std::vector<NodeId> sends;
  std::vector<NodeId> folds;      // to scalars
  std::vector<NodeId> evaluated;  // members, ascending; collectives are loads
};

/// What one launch of a kernel does: its phases in their order, those on slices first. After a
/// phase with folds all blocks, and all ranks where an AllReduce of the kernel takes them, wait for
/// each other. An update that assigns an AllGather or a Send of the kernel is no store, nor is an
/// output of a Send: the push goes into that memory.
struct KernelPhases {
  std::vector<KernelPhase> phases;
  std::vector<NodeId>
      scalars;  // members that are scalars and needed in memory: stored when the phases have ended
  std::vector<int> stored_in;  // by node: the phase that stores its value into memory; -1: none
  NodeId unready =
      -1;  // a member that needs a later phase's folds, or gathered elements, too early; -1: none
};

/// `kernel` ascending, `types` of all nodes. For any set of nodes that makes one iteration space,
/// legal or not.
KernelPhases PhasesOf(const Graph& g, const std::vector<TensorType>& types,
                      const std::vector<NodeId>& kernel);

/// States whose value before the step one of the nodes reads directly, ascending.
std::vector<NodeId> StatesRead(const Graph& g, const std::vector<NodeId>& nodes);

}  // namespace coconet

#endif  // COCONET_SCHEDULE_KERNEL_PHASES_H_
