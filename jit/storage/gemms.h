#pragma once

#include <vector>

#include "jit/launches/pieces.h"
#include "jit/launches/placed_launches.h"
#include "jit/storage/buffers.h"
#include "runtime/plan.h"

namespace coconet {

/// The steps that compute matrix product `id` on each rank from its part of the operands: one step
/// if leading dimensions fold into the rows or are a batch, more if they are sliced. With
/// `piece`, only those rows, matrices or columns. `candidate`: GemmStep::candidate of each step.
std::vector<GemmStep> GemmsOf(const PlacedLaunches& u, NodeId id, const BufferTable& table,
                              int ranks, int candidate, const Piece* piece);

/// The bytes of a product's operands and result, each counted once.
int64_t GemmBytes(const GemmStep& step);

}  // namespace coconet
