#pragma once

#include "coconet/ir/op_table.h"
#include "coconet/reference/bounded.h"

namespace coconet {

/// The error of `value`, which a function of bits (PwInfo::of_bits) gives of integers that are
/// known to within `errors`, not all of which are 0: kUndetermined where the ranges leave bits open
/// that change its sign, or by how much it shifts.
double ErrorOfBits(Pw fn, DType type, const Number& value, const Number* operands,
                   const double* errors);

}  // namespace coconet
