#ifndef COCONET_KERNEL_PHASES_H_
#define COCONET_KERNEL_PHASES_H_

#include <vector>

#include "coconet/graph.h"
#include "coconet/types.h"

namespace coconet {

/// What one launch of a kernel does, in two phases:
///   on slices: reduce the operands of its ReduceScatters over all ranks, compute, store, and push the operands of its
///              AllGathers to every rank, element by element of this rank's slice;
///   on whole:  compute and store element by element of the whole tensor, reading what the AllGathers brought (as
///              soon as that element has come) and reducing the operands of its AllReduces over all ranks.
/// A stored value is computed from what its phase loads, so a member may be evaluated in both phases, or more often.
/// An update that assigns an AllGather of the kernel is no store: the push goes into the state's memory.
struct KernelPhases {
  std::vector<NodeId> slice_stores;  // updates, outputs, and values that other steps take and no update here keeps
  std::vector<NodeId> gathers;
  std::vector<NodeId> whole_stores;  // as slice_stores
  std::vector<NodeId> on_slices;     // members evaluated in the first phase, ascending; ReduceScatters are loads
  std::vector<NodeId> on_whole;      // in the second; AllGathers and AllReduces are loads
};

/// `kernel` ascending, `types` of all nodes. For any set of nodes that makes one iteration space, legal or not.
KernelPhases PhasesOf(const Graph& g, const std::vector<TensorType>& types, const std::vector<NodeId>& kernel);

/// States whose value before the step one of the nodes reads directly, ascending.
std::vector<NodeId> StatesRead(const Graph& g, const std::vector<NodeId>& nodes);

}  // namespace coconet

#endif  // COCONET_KERNEL_PHASES_H_
