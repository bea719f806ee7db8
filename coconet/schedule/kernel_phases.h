#pragma once

#include <map>
#include <vector>

#include "coconet/ir/typed_graph.h"

namespace coconet {

/// The iteration space of a kernel: the elements of its largest tensors, its prologue apart. A
/// kernel that folds rows also iterates over rows: elements of tensors whose last `row_dims`
/// extents are 1 instead.
struct IterationSpace {
  Shape shape;
  int row_dims = 0;
  Shape rows() const;  // the shape of tensors with one element per row
};

/// `kernel` may be any set of nodes.
IterationSpace SpaceOf(const TypedGraph& program, const std::vector<NodeId>& kernel);

/// Whether a Fold is over the last dimensions, but not over all.
bool FoldsLastDims(const TypedGraph& program, NodeId id);
/// Whether a Fold has one result per row that one pass over one rank's elements computes: rows have
/// elements, and no row is sliced over ranks.
bool FoldsRows(const TypedGraph& program, NodeId id);
/// Whether a Fold reduces to a scalar.
bool FoldsAll(const TypedGraph& program, NodeId id);

/// The fold to a scalar whose per-rank results AllReduce `id` reduces with the fold's own kind
/// (over all tensors of a list if a Total lies between them); -1: none.
NodeId FoldBelow(const TypedGraph& program, NodeId id);

/// True for an AllToAll whose operand the kernel computes element by element: it pushes each
/// element into the memory of the rank that owns it in the result. The kernel of any other AllToAll
/// loads elements from the memory of the ranks that own them in the operand.
bool IsExchanged(const TypedGraph& program, const std::vector<NodeId>& kernel, NodeId id);

/// One pass over a kernel's elements.
///   On slices: for each element of this rank's slice, reduces the operands of the ReduceScatters
///     over all ranks, computes, stores, pushes the operands of the AllGathers to every rank, and
///     those of the AllToAlls to the rank whose slice of the result the element is in.
///   On slices that arrive, where the kernel exchanges: for each element of this rank's slice of an
///     AllToAll's result, reads it as soon as it has arrived, computes, and stores.
///   On whole tensors: for each element, reads the results of the AllGathers (as soon as they have
///     arrived), reduces the operands of the AllReduces over all ranks, computes, and stores.
/// Both accumulate folds to scalars, and push the operands of Sends to the peer of this rank in the
/// next stage. A stored value is computed from what its phase loads, so a member may be evaluated
/// in several phases, and several times in one; values that an earlier phase stored are loaded.
struct KernelPhase {
  bool on_slices = false;
  bool arriving = false;  // these are slices of what AllToAlls of the kernel bring
  int round = 0;          // folds to scalars, in this domain, that must be known
  /// Updates, outputs, and values that other launches take and no update here keeps.
  std::vector<NodeId> stores;
  std::vector<NodeId> gathers;
  std::vector<NodeId> exchanges;  // IsExchanged
  std::vector<NodeId> sends;
  std::vector<NodeId> folds;      // to scalars
  std::vector<NodeId> evaluated;  // members, ascending; collectives are loads
};

/// The phases of one launch of a kernel in execution order, those on slices first. After a phase
/// with folds, all blocks wait for each other, and all ranks do if an AllReduce of the kernel takes
/// the folds. An update that assigns what the kernel gathers, exchanges or sends is not a store,
/// nor is an output of a Send: the push writes that memory.
struct KernelPhases {
  std::vector<KernelPhase> phases;
  /// Scalar members that are needed in memory; stored after the last phase.
  std::vector<NodeId> scalars;
  /// A member that would need folds or gathered elements of a later phase; -1: none.
  NodeId unready = -1;
  /// The phase that stores each value.
  std::map<NodeId, int> stored_in;

  /// The phase that stores the value of node `id` into memory; -1: none.
  int StoredIn(NodeId id) const {
    const auto phase = stored_in.find(id);
    return phase == stored_in.end() ? -1 : phase->second;
  }
};

/// The prologue of a kernel is in no phase: it is computed first, into memory, and the phases load
/// it. `kernel` is ascending: any set of nodes with one iteration space, legal or not.
KernelPhases PhasesOf(const TypedGraph& program, const std::vector<NodeId>& kernel);

/// Whether a node is a cast to the type that kernels compute in anyway: f16 and bf16 to f32,
/// narrower integers to i32.
bool IsWidening(const TypedGraph& program, NodeId id);
/// The value that ranks read of each other for a collective of `kernel`, which is ascending: the
/// operand of a widening cast that a reduction takes in the same kernel, so that narrow values
/// cross; else the collective's operand.
NodeId CrossingValue(const TypedGraph& program, NodeId collective,
                     const std::vector<NodeId>& kernel);

/// States whose value before the step one of the nodes reads directly, ascending.
std::vector<NodeId> StatesRead(const Graph& g, const std::vector<NodeId>& nodes);

}  // namespace coconet
