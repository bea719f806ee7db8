#pragma once

#include "coconet/testing/elementwise_draws.h"

namespace coconet {

/// Draws operations on whole tensors and rows of bound sizes, of values of the pool and of new
/// inputs that fit them. A result is absent if the operation does not fit the operands that were
/// drawn.
class TensorDraws : protected ElementwiseDraws {
 protected:
  using ElementwiseDraws::ElementwiseDraws;

  Drafted Folded();
  Drafted Normalized();
  /// A product with another value that fits, or with a new input.
  Drafted Product();
  Drafted Viewed();
  /// A tensor whose parts have changed places, or several tensors.
  Drafted Joined();
  Drafted Dropped();
  Drafted RoundedAtRandom();
  /// Mostly as many rows as the table has, so that the result meets other values; some of them are
  /// out of range.
  Drafted Looked();
  /// Bags of rows of a table, fixed or ragged, some of the rows out of range.
  Drafted Bagged();
  /// Sums of updates by index, mostly in their own shape.
  Drafted Added();

  Shape shape_;   // that most tensors have
  Drafted seed_;  // of random words

 private:
  Drafted ProductOf(const MatMul& op, Drafted a, Drafted b, bool first);
  /// The shape of a new operand that meets `a` as the product's first (or second) one.
  Shape FactorFor(const MatMul& op, Drafted a, bool first);
  /// Back to the program's shape, flat, or with one dimension cut in two.
  Shape Reshaped(Shape shape);
  Drafted LookedUp(Drafted table, Drafted indices, int dim);
};

}  // namespace coconet
