#pragma once

#include <cstdint>

#include "coconet/ir/graph.h"

namespace coconet {

struct RandomModelOptions {
  int operations = 12;  // about as many as the program is written with, besides declarations,
                        // updates and outputs
  int64_t max_elements = 400;  // of a declared tensor
  bool rooted = false;         // broadcast, reduce and all_to_all, too
  bool sends = false;          // to the next and the previous stage, too
};

/// A bound program of all operations, dtypes and layouts of the language, of tensors of 0 to 4
/// dimensions with odd, few or no elements: elementwise, casts, comparisons, folds of rows, columns
/// and everything, softmax and norms, matrix products sliced in any way, views, dropout,
/// collectives over flat and named dimensions, several states and outputs. A pure function of its
/// arguments.
///
/// Well conditioned, as RandomStep is: divisors and arguments of roots and logarithms stay away
/// from 0, values small.
Graph RandomModel(uint64_t seed, const RandomModelOptions& options = {});

}  // namespace coconet
