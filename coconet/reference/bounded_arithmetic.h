#pragma once

#include <cstddef>
#include <cstdint>

#include "coconet/base/dtype.h"
#include "coconet/ir/op_table.h"
#include "coconet/reference/rounding.h"

namespace coconet {

// The arithmetic that most of a long program is, in loops of a fixed number of turns, without calls
// or branches: compilers turn them into vector instructions. Values and bounds are those of
// BoundedPointwise to the bit.

/// Elements that are computed together.
inline constexpr size_t kTogether = 128;
/// Elements from which on that is worth it.
inline constexpr size_t kFewestTogether = 8;

/// The elements of an operand, with their bounds; of a function of one, the second is not read.
struct FloatOperand {
  const double* x;      // kTogether elements, or one that stands for all of them
  const double* error;  // as many
};
/// What a loop found among its results.
struct FloatFindings {
  bool left = false;     // some are not computed
  bool inexact = false;  // some have an error other than 0
};
/// Computes kTogether results, with their bounds. An error of NaN marks an element that is not
/// computed: one whose operands or result are not finite, which may lie at a pole, or whose
/// exactness takes more to tell. Results do not overlap operands.
using FloatLoop = FloatFindings (*)(const FloatOperand& a, const FloatOperand& b,
                                    const Rounding& rounding, double* values, double* errors);
/// The loop of fn over floats of `type`, of which the operands of `one`, by bit, have one element;
/// null: it has none.
FloatLoop FloatLoopOf(Pw fn, DType type, unsigned one);

/// The low 64 bits of fn of the low 64 bits of integers of `type`, in two's complement.
using IntegerLoop = void (*)(const uint64_t* a, const uint64_t* b, uint64_t* results);
/// The same for integers.
IntegerLoop IntegerLoopOf(Pw fn, DType type);

}  // namespace coconet
