#pragma once

#include <cstdint>
#include <map>

#include "coconet/ir/graph.h"

namespace coconet {

/// A size at which variants are verified.
struct SmallSize {
  /// About how many elements the largest tensor has: by default more than two chunks per rank for a
  /// few ranks.
  int64_t elements = 10007;
  int64_t multiple = 1;  // extents are odd multiples of it if possible
  /// Numbers of scales along a sliced dimension are odd multiples of it if possible: of as many
  /// ranks, so that slices end where blocks do.
  int64_t parts = 1;
};

/// Returns the program with every large extent replaced by a small one, odd if possible, so that
/// all elements can be checked, and tails are no multiples of anything. Equal extents stay equal, 0
/// and 1 stay what they are, and a list keeps a few of its tensors. Relations of extents by
/// reshapes, ranges, concatenations and blocks of scales, which keep their size, hold for the small
/// ones, too; if no such small extents are found, the program stays as it is. The kernels stay the
/// same, since sizes are arguments of kernels.
Graph Shrink(const Graph& program, const SmallSize& to = {});
/// The small extent for each extent of a program, as in Shrink.
std::map<int64_t, int64_t> SmallExtents(const Graph& program, const SmallSize& to);

/// The program with each number that `extents` has, in the shapes of declarations and results and
/// in ranges, replaced by its image there.
Graph WithExtents(const Graph& program, const std::map<int64_t, int64_t>& extents);

/// Multiplications of a step's matrix products, on one rank. `program` is bound.
double ProductsOf(const Graph& program);

}  // namespace coconet
