#pragma once

#include <cstdint>

#include "coconet/ir/graph.h"
#include "coconet/reference/interpreter.h"

namespace coconet {

struct RandomStepOptions {
  int operations =
      12;  // about as many as the program computes with, not counting constants and casts
  int max_reductions = 3;    // AllReduces: at least one, and later ones may depend on earlier ones
  bool narrow_types = true;  // f16 and bf16 beside f32
  bool matrices = true;      // [a, b] beside [a], with row vectors of their own reductions
  bool choices = true;       // comparisons and selects
};

/// A bound program like a training step: local gradients, some of them accumulated, are reduced,
/// then computed with elementwise, and update states of every layout that programs declare. Old
/// values of states are read before and after their updates. Sizes are small and odd. A pure
/// function of its arguments.
///
/// Well conditioned: with inputs and states within [-1, 1] every value stays within +-100, divisors
/// and arguments of roots and logarithms stay away from 0, so that error bounds stay near the
/// roundings.
Graph RandomStep(uint64_t seed, const RandomStepOptions& options = {});

/// Data for it, and for the workloads: a pure function of (seed, name, rank, index), representable
/// in every float type, within [-1, 1]; within [0, 1] for `v` and `lr`, 1 for `step`.
ElementSource RandomElements(uint64_t seed);

}  // namespace coconet
