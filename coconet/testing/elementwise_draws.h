#pragma once

#include <vector>

#include "coconet/testing/value_pool.h"

namespace coconet {

/// Draws elementwise operations on values of the pool. A result is absent if the operation does not
/// fit the operands that were drawn.
class ElementwiseDraws : protected ValuePool {
 protected:
  static constexpr int kMostRanks = 8;

  using ValuePool::ValuePool;

  // Draws for symbolic programs.
  Drafted Function();  // any function of any operands
  Drafted Constant();
  Drafted World();
  Drafted Counted();  // of elements, or ranks

  Drafted Combined();
  /// Requires numbers `a`; `b` may be of any dtype.
  Drafted Combined(Drafted a, Drafted b);
  Drafted OfOne();
  Drafted Chosen();  // a comparison, or a choice by it
  Drafted Masked();  // the first elements of one value along a dimension, the others of another
  Drafted CastOf();
  Drafted BitsOf();
  Drafted Indices();
  /// The sum divided by the number of ranks.
  Drafted Averaged(Drafted sum, double bound);

 private:
  Drafted IndicesOf(Drafted a);
  /// Requires integers of one dtype.
  Drafted OfBits(Drafted a, Drafted b);
};

}  // namespace coconet
