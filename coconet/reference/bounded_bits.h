#pragma once

#include "coconet/ir/op_table.h"
#include "coconet/reference/bounded.h"

namespace coconet {

/// The error of `value`, the result of a function of bits (PwInfo::of_bits) for integers known to
/// within `errors`, which are not all 0: kUndetermined if the ranges leave bits open that change
/// its sign, or by how much it shifts.
double ErrorOfBits(Pw fn, DType type, const Number& value, const Number* operands,
                   const double* errors);

}  // namespace coconet
