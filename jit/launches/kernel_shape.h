#pragma once

#include <cstdint>
#include <vector>

#include "coconet/schedule/kernel_phases.h"

namespace coconet {

/// What the nodes of a kernel alone decide, whatever its config: the code generator (jit/emit) and
/// the cost model (autotune/cost) both read it, so that what is counted is what is written. A
/// kernel computes its prologue into memory, and then its members: in phases, tile by tile of a
/// product, or in one strided fold.
struct KernelShape {
  /// `kernel`, ascending, may be any set of nodes with one iteration space, legal or not. `program`
  /// must outlive this.
  KernelShape(const TypedGraph& program, const std::vector<NodeId>& kernel);

  const TypedGraph& program;
  std::vector<NodeId> prologue, members;  // ascending
  IterationSpace space;                   // of the members
  KernelPhases phases;
  int64_t row_length = 1;    // elements of a row, if the kernel folds rows
  NodeId tiled = -1;         // the member that is a product, computed tile by tile; -1: none
  NodeId awaited = -1;       // the same of the prologue, whose tiles the phases await; -1: none
  NodeId strided_fold = -1;  // a fold over dimensions that are neither the last nor all; -1: none
  /// Where slices are cut that members are computed on: over `flat` without any.
  Layout slices = Layout::Sliced(Layout::kFlat);

  bool IsMember(NodeId id) const;
  /// The kernel folds rows, and there is one of `id` per row.
  bool IsRow(NodeId id) const;
  /// A phase before this one stores the value into memory.
  bool IsStoredBefore(int phase, NodeId id) const;
  /// The phase loads the value, which was computed before it, or elsewhere.
  bool IsLoaded(int phase, NodeId id) const;
};

}  // namespace coconet
