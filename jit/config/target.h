#pragma once

#include <compare>

#include "coconet/base/numerics.h"

namespace coconet {

/// The ranks that a plan is for, and the numerics that their user admits.
struct Target {
  int ranks = 1;  // of a stage: those that collectives span
  int nodes =
      1;  // of a stage, with `ranks / nodes` ranks each: only these reach each other's memory
  int stages = 1;             // of the world; all run the same program, and send to each other
  bool stages_apart = false;  // on different nodes: kernels do not reach from one to another
  Numerics numerics = {};     // of collectives that are left to a library; kernels round once

  Target(int ranks, int nodes = 1, int stages = 1,
         bool stages_apart = false)  // NOLINT: 4 reads as four ranks
      : ranks(ranks),
        nodes(nodes),
        stages(stages),
        stages_apart(stages_apart || (stages > 1 && nodes > 1)) {}
  int ranks_per_node() const { return ranks / nodes; }
  int world() const { return ranks * stages; }
  int world_nodes() const { return stages_apart ? nodes * stages : nodes; }
  auto operator<=>(const Target&) const = default;
};

}  // namespace coconet
