#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "coconet/ir/graph.h"

namespace coconet {

/// The product, or the sum, of `left` is that of `right`.
struct Relation {
  bool is_product = false;
  std::vector<int64_t> left = {}, right = {};
  int64_t keeps = 0;       // the number, if any, that is its own image: blocks of scales stay whole
  bool of_slices = false;  // the scales, of whose number and blocks it is, are sliced
  auto operator<=>(const Relation&) const = default;
};

/// How operations relate the extents of a program: reshapes, ranges, concatenations, blocks of
/// scales. Of a program with lists also how the blocks of the first `tensors` kinds of tensors do,
/// which are known with the sizes. None of a program that does not infer.
std::set<Relation> RelationsOf(const Graph& program, size_t tensors);

}  // namespace coconet
