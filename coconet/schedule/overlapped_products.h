#pragma once

#include <vector>

#include "coconet/schedule/schedule.h"

namespace coconet {

// Products beside collectives. A product in an overlap may be made tile by tile: a kernel that
// communicates then takes each tile as soon as it is there, or the product begins with the rows
// that a kernel has gathered. A library makes the product, or it is in a kernel that computes with
// its elements, fuse(MM, C), which has no other way.

/// The product of a kernel that takes its elements tile by tile, from registers; -1: none.
NodeId TiledMemberOf(const TypedGraph& program, const std::vector<NodeId>& kernel);

/// The product that a launch of the schedule makes, given by its first node, and that kernels can
/// make in tiles: that of a library, or the TiledMemberOf a kernel; -1: neither.
NodeId ProductOfLaunch(const Schedule& s, NodeId first);

/// Whether a kernel of the overlap has a TiledMemberOf.
bool TilesInKernel(const Schedule& s, const std::vector<NodeId>& overlap);
/// Whether a kernel of some overlap of the schedule has one.
bool TilesInKernels(const Schedule& s);

/// Whether `kernel` gathers slices to the first operand of `product`, whose rows may begin with
/// their first chunks.
bool GathersFor(const TypedGraph& program, const std::vector<NodeId>& kernel, NodeId product);

/// Whether some launch of the overlap takes a product's tiles, or gathers rows of one, if kernels
/// do what communicates: one after a product communicates, or one before it GathersFor it.
bool FitsTilesBeside(const Schedule& s, const std::vector<NodeId>& overlap);

}  // namespace coconet
