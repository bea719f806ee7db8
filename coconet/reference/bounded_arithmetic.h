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

/// Elements of the operands of a function of floats, with their bounds. The second operand of a
/// function of one is not read.
struct FloatOperands {
  double x[2][kTogether];
  double error[2][kTogether];
};
/// Results, with their bounds. An error of NaN marks an element that is not computed: one whose
/// operands or result are not finite, which may lie at a pole, or whose exactness takes more to
/// tell.
struct FloatResults {
  double value[kTogether];
  double error[kTogether];
};
using FloatLoop = void (*)(const FloatOperands& operands, const Rounding& rounding,
                           FloatResults& results);
/// The loop of fn over floats of `type`; null: it has none.
FloatLoop FloatLoopOf(Pw fn, DType type);

/// The low 64 bits of fn of the low 64 bits of integers of `type`, in two's complement.
using IntegerLoop = void (*)(const uint64_t* a, const uint64_t* b, uint64_t* results);
/// The same for integers.
IntegerLoop IntegerLoopOf(Pw fn, DType type);

}  // namespace coconet
