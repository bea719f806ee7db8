#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "coconet/ir/graph.h"

namespace coconet {

/// The product, or the sum, of `left` is that of `right`. A product of how many blocks a dimension
/// has, and of their extent, is that of the dimension (MatMul with scales).
struct Relation {
  bool is_product = false;
  std::vector<int64_t> left = {}, right = {};
  int64_t keeps = 0;       // the extent of blocks, which a small program has, too; 0: not of blocks
  bool of_slices = false;  // ranks have slices of the dimension that has blocks
  auto operator<=>(const Relation&) const = default;
};

/// How operations relate the extents of a program: reshapes, ranges, concatenations, blocks of
/// scales. Of a program with lists also how the blocks of the first `tensors` kinds of tensors do,
/// which are known with the sizes. None of a program that does not infer.
std::set<Relation> RelationsOf(const Graph& program, size_t tensors);

}  // namespace coconet
