#pragma once

#include <cstdint>
#include <vector>

#include "coconet/ir/typed_graph.h"

namespace coconet {

// The prologue of a kernel: what it computes as a whole, into memory, before its phases. Matrix
// products of few rows, and scatters.

/// The most rows of a matrix product that a kernel computes itself: with so few, loading the second
/// operand takes as long as multiplying.
constexpr int64_t kMostRows = 64;

/// Operations whose place in a kernel is its prologue.
bool IsOfPrologue(const Graph& g, NodeId id);

/// Whether a kernel can compute `id` in its prologue: a scatter, or a product of one matrix on each
/// rank, of at most kMostRows rows. Leading dimensions of the first operand count as rows. False of
/// a product where an extent is unbound.
bool FitsPrologue(const TypedGraph& program, NodeId id);

/// The prologue of a kernel, and its other members. Both ascending, as `kernel` is.
std::vector<NodeId> PrologueOf(const Graph& g, const std::vector<NodeId>& kernel);
std::vector<NodeId> WithoutPrologue(const Graph& g, const std::vector<NodeId>& kernel);

}  // namespace coconet
