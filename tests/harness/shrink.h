#pragma once

#include <functional>

#include "coconet/ir/graph.h"

namespace coconet {

/// A smaller program that still fails, by leaving out results, by replacing operations by one of
/// their operands, and by smaller extents, as long as `fails` says so of what is left; at most
/// `tries` programs are tried. `fails(program)` must be true.
Graph Shrink(const Graph& program, int tries, const std::function<bool(const Graph&)>& fails);

}  // namespace coconet
