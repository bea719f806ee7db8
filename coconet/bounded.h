#ifndef COCONET_BOUNDED_H_
#define COCONET_BOUNDED_H_

#include <vector>

#include "absl/types/span.h"
#include "coconet/op.h"

namespace coconet {

/// Values of some elements, each with an absolute bound on what a correct implementation may differ by:
/// the arithmetic of the interpreter. Errors are >= 0, never NaN, and infinite where the implementation's value is
/// not determined (an overflow, a pole or the end of a domain within reach of the operands' errors).
struct Bounded {
  std::vector<double> value;
  std::vector<double> error;  // as long as `value`
  bool exact = true;          // all errors are 0

  /// One entry stands for any number of equal elements.
  size_t size() const { return value.size(); }
};

/// A constant or a runtime scalar as an implementation holds it in `dtype`.
Bounded BoundedScalar(double value, DType dtype);

/// fn over operands of one type; operands of one entry are spread over the others' elements.
Bounded BoundedPointwise(Pw fn, DType operands, absl::Span<const Bounded* const> args);

Bounded BoundedCast(DType from, DType to, const Bounded& a);

/// Reduction of one value a rank, in any order, every partial result rounded to `dtype`.
Bounded BoundedReduce(ReduceKind kind, DType dtype, absl::Span<const Bounded* const> ranks);

}  // namespace coconet

#endif  // COCONET_BOUNDED_H_
