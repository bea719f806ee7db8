#pragma once

#include <cstdint>

#include "coconet/reference/interpreter.h"

namespace coconet {

/// Data for training steps and workloads: a pure function of (seed, name, rank, index),
/// representable in every float type, within [-1, 1]; within [0, 1] for `v` and `lr`, 1 for `step`.
ElementSource RandomElements(uint64_t seed);

/// The same for the program's inputs and states; integers are within [-9, 9], bools are both.
ElementSource RandomElements(uint64_t seed, const Graph& program);

}  // namespace coconet
