#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "coconet/base/numerics.h"
#include "coconet/ir/op_table.h"

namespace coconet {

/// Values of some elements, each with an absolute bound on what a correct implementation may differ
/// by: the arithmetic of the interpreter. Errors are >= 0, never NaN, and infinite if the
/// implementation's value is not determined (an overflow, a pole or the end of a domain within
/// reach of the operands' errors). Infinities and NaNs of inputs, states and constants are values
/// as others: what they make of a result is determined, with a bound of 0.
struct Bounded {
  std::vector<Number> value;  // real of floats, else integers
  std::vector<double> error;  // as long as `value`
  bool exact = true;          // all errors are 0
  /// For the greatest or least of some elements: whether it is the same element whatever the errors
  /// are. Otherwise empty.
  std::vector<bool> sole = {};

  /// One entry stands for any number of equal elements.
  size_t size() const { return value.size(); }
};

/// A constant or a runtime scalar as an implementation holds it in `dtype`.
Bounded BoundedScalar(const Number& value, DType dtype);

/// fn over operands of one type; operands of one entry are spread over the others' elements. A
/// value equals itself, unless it is NaN. `with_extreme`: fn compares the elements of a row with
/// the row's greatest or least; results are certain if it is known which element that is.
Bounded BoundedPointwise(Pw fn, DType operands, absl::Span<const Bounded* const> args,
                         bool with_extreme = false);

/// A known integer becomes the nearest f32 or f64. Other casts to floats keep the real value, with
/// a bound if the type does not hold it; an infinity is NaN, and not determined, where the type has
/// none.
Bounded BoundedCast(DType from, DType to, const Bounded& a);
/// Determined if a is exact.
Bounded BoundedBitCast(DType from, DType to, const Bounded& a);

/// How an implementation may reduce over ranks.
struct ReduceTerms {
  Numerics numerics = {};
  /// The ranks are of several nodes: sums are rounded before they cross nodes, too.
  bool crosses_nodes = false;
};
/// Reduction of one value per rank, in any order. Sums of narrow floats with SumRounding::kOnce are
/// accumulated in f32 and rounded once, not necessarily to nearest (a switch between GPUs does
/// not). Across nodes, with kEach, and for other types, each addition rounds to `dtype`. With
/// Nans::kNone minima and maxima of a NaN are not determined.
Bounded BoundedReduce(ReduceKind kind, DType dtype, absl::Span<const Bounded* const> ranks,
                      const ReduceTerms& terms = {});

/// `a` if `keep`, times 1 / (1 - rate); else 0. `keep` has as many entries as `a` has elements.
Bounded BoundedDropout(DType dtype, double rate, const Bounded& a, const std::vector<bool>& keep);

/// f32 rounded to bf16 by one random word each. The bound is 0 if all values within the bound of
/// `a` are rounded to the same number.
Bounded BoundedStochasticRound(const Bounded& a, const std::vector<uint32_t>& words);

/// A value and its bound.
struct BoundedValue {
  Number value;
  double error = 0;
  bool sole = false;  // Bounded::sole
};

/// A Fold of one result, element by element, in any order. Sums of floats are accumulated in double
/// precision and rounded once; sums of integers wrap around, and are determined if all elements
/// are.
class BoundedFold {
 public:
  BoundedFold(FoldKind kind, DType dtype);
  void Add(const Number& value, double error);
  /// `count`: elements of the whole mean, which the added ones may be a part of. `parts`: of how
  /// many ranks, each of which may round its own part, to f32 at least, before they are added up.
  BoundedValue Finish(int64_t count, int parts = 1) const;

 private:
  void AddReal(double value, double error);
  BoundedValue FinishReal(int64_t count, int parts) const;

  FoldKind kind_;
  DType dtype_;
  int64_t added_ = 0;
  double sum_ = 0, magnitude_ = 0, spread_ = 0;    // magnitude_: of finite elements
  absl::int128 integer_ = 0;                       // of integers: their sum, or the extreme
  bool is_exact_ = true;                           // all errors are 0
  int quantum_ = std::numeric_limits<int>::max();  // LowestBit of all elements
  bool special_ =
      false;  // an element is NaN or, of a sum, infinite; spread_ is of those of extremes
  bool undetermined_ = false;   // an element of extremes is
  double extreme_, up_, down_;  // and what it becomes at the ends of the bounds
  double extreme_error_ = 0;    // of the element that is it
  double others_;               // the extreme of all others' ends
};

/// A row or column of a matrix product's operand.
struct BoundedLine {
  std::vector<double> value, error;  // no errors: all 0
  /// LowestBit of all values; computed once.
  int Quantum() const;

 private:
  mutable std::optional<int> quantum_;
};
/// Elements times the scales of their blocks: element i has scale i / block. Bounded are a rounding
/// of each product to f32, and one of a sum of a block's terms times their scale; what an infinite
/// scale makes of sums depends on their order.
BoundedLine BoundedScaled(const BoundedLine& line, const BoundedLine& scales, int64_t block);
/// The scalar product of two lines, accumulated in single precision in any order, rounded once to
/// `dtype`. For bf16, subnormal operands and sums may be taken as 0, as processors' instructions
/// do. The bound of the accumulation is statistical if that is less than the worst case: with
/// random operands, one element in 10^13 may lie beyond it. `of_floats8`: the terms are products of
/// 8-bit floats, of which tensor cores add many at once, and keep only some bits of each.
BoundedValue BoundedDot(DType dtype, const BoundedLine& a, const BoundedLine& b,
                        bool of_floats8 = false);

}  // namespace coconet
