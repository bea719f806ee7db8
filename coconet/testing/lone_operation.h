#pragma once

#include <cstdint>

#include "coconet/testing/simulated_ranks.h"

namespace coconet {

/// Whether the launch of these nodes is one operation by itself, which LoneElement computes, and
/// not a kernel.
bool IsLone(const TypedGraph& program, const std::vector<NodeId>& launch);

/// An element of a collective, a fold or a product, computed from its operands in memory.
Number LoneElement(SimulatedRanks& ranks, NodeId id, int rank, int64_t index);

}  // namespace coconet
