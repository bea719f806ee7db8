#pragma once

#include "autotune/cost/work.h"
#include "coconet/ir/typed_graph.h"

namespace coconet {

/// The latency of an operation on a pack, in cycles, and the number of its instructions. Typical of
/// current processors (uops.info).
struct Chain {
  double latency = 0, instructions = 0;
};
Chain ChainOf(const TypedGraph& program, NodeId id);
Chain ChainOfLoad(DType dtype);
Chain ChainOfStore(DType dtype);

/// Adds the work of node `id` for each element, with operands that are computed or loaded before.
void CountOperation(const TypedGraph& program, NodeId id, double elements, double lanes,
                    Work& work);

}  // namespace coconet
