#pragma once

#include <cstdint>
#include <vector>

#include "coconet/ir/typed_graph.h"

namespace coconet {

// The prologue of a kernel: matrix products, and scatters. They are computed as a whole, into
// memory, before the kernel's phases. A product of many rows is computed tile by tile. It is in the
// prologue where ranks reduce it, which await its tiles, and is one matrix then; else it is a
// member of the kernel, which takes its elements as a tile's sums are complete, from registers.

/// The most rows of a matrix product that a kernel computes as a whole: with so few, loading the
/// second operand takes as long as multiplying.
constexpr int64_t kMostRows = 64;

/// Elements along k that tiles multiply before they take scales into account: 128 bytes.
constexpr int64_t kSlabOfScales = 128;

/// Whether the place of `id` in `kernel`, ascending, is the prologue: a scatter, or a product that
/// is not FitsTiles or that ranks read of each other for a reduction of the kernel.
bool IsOfPrologue(const TypedGraph& program, const std::vector<NodeId>& kernel, NodeId id);

/// Whether `id` is a product of 8-bit floats; and whether it is one whose operands lie along k, the
/// dimension that is summed over.
bool IsOfFloats8(const TypedGraph& program, NodeId id);
bool LiesAlongK(const TypedGraph& program, NodeId id);

/// Whether a kernel can compute `id` as a whole: a scatter, or a product of one matrix on each
/// rank, not of 8-bit floats, of at most kMostRows rows. Leading dimensions of the first operand
/// count as rows. False for a product with an unbound extent.
bool FitsPrologue(const TypedGraph& program, NodeId id);

/// Whether kernels have no code for matrix product `id`, in tiles or not: its operands have scales,
/// and do not lie along k, or have blocks whose extent there is neither a multiple of kSlabOfScales
/// nor all of it, or that some of several matrices share.
bool HasNoKernel(const TypedGraph& program, NodeId id);
/// Whether `id` is a product of one matrix on each rank, of bound extents, and not one of
/// HasNoKernel.
bool IsOneProduct(const TypedGraph& program, NodeId id);
/// Whether a kernel can compute `id` tile by tile: a product, on each rank, of one matrix or of a
/// batch, of more than kMostRows rows in all, or of 8-bit floats along k. False for a product with
/// an unbound extent.
bool FitsTiles(const TypedGraph& program, NodeId id);
/// The product of a kernel that it computes tile by tile, in its prologue or out of it; -1: none.
NodeId TiledProductOf(const TypedGraph& program, const std::vector<NodeId>& kernel);

/// The prologue of a kernel, and its other members; both ascending, as `kernel` is.
std::vector<NodeId> PrologueOf(const TypedGraph& program, const std::vector<NodeId>& kernel);
std::vector<NodeId> WithoutPrologue(const TypedGraph& program, const std::vector<NodeId>& kernel);

}  // namespace coconet
