#pragma once

#include "autotune/cost/work.h"
#include "coconet/ir/typed_graph.h"

namespace coconet {

/// How long an operation on a pack takes until its result is there, in cycles, and of how many
/// instructions it is. Of current processors (uops.info), to the precision that matters here.
struct Chain {
  double latency = 0, instructions = 0;
};
Chain ChainOf(const TypedGraph& program, NodeId id);
Chain ChainOfLoad(DType dtype);
Chain ChainOfStore(DType dtype);

/// Adds what node `id` computes of each element, from operands that are computed or loaded before.
void CountOperation(const TypedGraph& program, NodeId id, double elements, double lanes,
                    Work& work);

}  // namespace coconet
