#pragma once

#include <cstdint>
#include <vector>

#include "coconet/ir/typed_graph.h"

namespace coconet {

/// The most rows of a matrix product that a kernel computes itself: with so few, loading the second
/// operand takes as long as multiplying.
constexpr int64_t kMostRows = 64;

/// Whether a kernel can compute matrix product `id`: one matrix on each rank, of at most kMostRows
/// rows. Leading dimensions of the first operand count as rows. False where an extent is unbound.
bool HasFewRows(const TypedGraph& program, NodeId id);

/// The matrix products of a kernel, which it computes before its phases, and its other members.
/// Both ascending, as `kernel` is.
std::vector<NodeId> ProductsOf(const Graph& g, const std::vector<NodeId>& kernel);
std::vector<NodeId> WithoutProducts(const Graph& g, const std::vector<NodeId>& kernel);

}  // namespace coconet
