#pragma once

#include <cstdint>

#include "coconet/ir/graph.h"

namespace coconet {

struct RandomProgramOptions {
  int operations = 16;     // besides declarations, constants, updates and outputs
  bool all_dtypes = true;  // false: f32 (and the bool of comparisons) only
  bool matrices = true;    // tensors of [M, N] beside those of [N]; broadcasting between them
  bool slices = true;      // reduce_scatter and all_gather as the program's own operations
};

/// A valid program that depends on nothing but the arguments: elementwise operations, casts,
/// constants and collectives over a local, a replicated and two state tensors and a scalar, ending
/// in updates and an output. Sizes are the symbols N and (with matrices) M.
Graph RandomProgram(uint64_t seed, const RandomProgramOptions& options = {});

}  // namespace coconet
