#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/types/span.h"
#include "coconet/base/dtype.h"
#include "coconet/ir/op_table.h"
#include "coconet/reference/bounded_arithmetic.h"
#include "coconet/reference/rounding.h"

namespace coconet {

// Functions of floats, of elements that are plain doubles.

/// Elements of an operand with their bounds.
struct FloatColumn {
  const double* value;
  const double* error;
  bool is_one;  // one element stands for all
  bool exact;   // all errors are 0, also those of elements that are computed at another time
};

/// The elements that memory for `count` ones has: loops compute kTogether at a time.
constexpr size_t PaddedCount(size_t count) {
  return (count + kTogether - 1) / kTogether * kTogether;
}

/// Elements that columns do not have, but memory for them has: any numbers that need no care.
inline void FillPadding(size_t count, double* values, double* errors) {
  std::fill(values + count, values + PaddedCount(count), 1);
  std::fill(errors + count, errors + PaddedCount(count), 0);
}

/// BoundedPointwise of one or two columns of `count` floats; returns whether all errors are 0.
/// Columns of many elements, and the results, have memory for PaddedCount(count). Results do not
/// overlap operands.
bool ComputeFloats(Pw fn, DType type, absl::Span<const FloatColumn> args, size_t count,
                   double* values, double* errors);

/// Largest deviation of fn from `y` at the corners of the operands' bounds. Every function is
/// monotone in each operand, or has extrema that are no sharper than these corners see. A corner
/// outside of the function's domain counts as the domain's edge, which is 0 for all functions that
/// have one: an implementation gets there only by the rounding that the bound is for.
template <int kArity>
double Spread(const PwInfo& fn, const double* x, const double* e, double y) {
  if (fn.pole != nullptr && fn.pole(x, e)) return kUndetermined;
  if (std::any_of(e, e + kArity, [](double error) { return std::isinf(error); }))
    return kUndetermined;
  double spread = 0;
  for (unsigned signs = 0; signs < (1u << kArity); ++signs) {
    double corner[kArity];
    bool duplicate = false;
    for (int k = 0; k < kArity; ++k) {
      const bool up = signs >> k & 1;
      duplicate |= up && e[k] == 0;
      corner[k] = up ? x[k] + e[k] : x[k] - e[k];
    }
    if (duplicate) continue;
    double there = fn.eval(corner);
    if (std::isnan(there) && !std::isnan(y)) {
      corner[0] = std::max(corner[0], 0.0);
      there = fn.eval(corner);
    }
    spread = std::max(spread, Distance(there, y));
  }
  return spread;
}

}  // namespace coconet
