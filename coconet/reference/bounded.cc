#include "coconet/reference/bounded.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/reference/bounded_arithmetic.h"
#include "coconet/reference/bounded_bits.h"
#include "coconet/reference/bounded_floats.h"
#include "coconet/reference/rounding.h"

namespace coconet {
namespace {

/// Element i of an operand, whether it has one entry or many.
struct Operand {
  explicit Operand(const Bounded& b)
      : values(b.value.data()),
        errors(b.error.data()),
        stride(b.size() == 1 ? 0 : 1),
        exact(b.exact) {}
  const Number& value(size_t i) const { return values[i * stride]; }
  double real(size_t i) const { return value(i).real(); }
  double error(size_t i) const { return errors[i * stride]; }

  const Number* values;
  const double* errors;
  size_t stride;
  bool exact;
};

Bounded Sized(size_t size) { return {std::vector<Number>(size), std::vector<double>(size)}; }

Bounded Finished(Bounded result) {
  result.exact =
      std::all_of(result.error.begin(), result.error.end(), [](double e) { return e == 0; });
  return result;
}

/// Elements from `begin` on of an operand; those behind the last of `count` ones are padding.
FloatColumn Load(const Operand& operand, size_t begin, size_t count, double* values,
                 double* errors) {
  if (operand.stride == 0) {
    values[0] = operand.real(0);
    return {values, operand.errors, /*is_one=*/true, operand.exact};
  }
  for (size_t i = 0; i < count; ++i) values[i] = operand.values[begin + i].real();
  if (count == kTogether) return {values, operand.errors + begin, /*is_one=*/false, operand.exact};
  std::copy_n(operand.errors + begin, count, errors);
  FillPadding(count, values, errors);
  return {values, errors, /*is_one=*/false, operand.exact};
}

Bounded FloatPointwise(Pw fn, DType type, absl::Span<const Bounded* const> args, size_t size) {
  Bounded result = Sized(size);
  double x[2][kTogether], e[2][kTogether], y[kTogether], errors[kTogether];
  for (size_t begin = 0; begin < size; begin += kTogether) {
    const size_t count = std::min(kTogether, size - begin);
    FloatColumn columns[2];
    for (size_t k = 0; k < args.size(); ++k)
      columns[k] = Load(Operand(*args[k]), begin, count, x[k], e[k]);
    result.exact &= ComputeFloats(fn, type, {columns, args.size()}, count, y, errors);
    std::copy_n(y, count, result.value.begin() + begin);
    std::copy_n(errors, count, result.error.begin() + begin);
  }
  return result;
}

/// IntegerPointwise of operands without errors, by a loop.
Bounded ExactIntegers(IntegerLoop loop, DType type, absl::Span<const Bounded* const> args,
                      size_t size) {
  const Operand a(*args[0]), b(*args[1]);
  Bounded result = Sized(size);
  uint64_t x[2][kTogether] = {}, y[kTogether];
  for (size_t begin = 0; begin < size; begin += kTogether) {
    const size_t count = std::min(kTogether, size - begin);
    for (size_t i = 0; i < count; ++i) {
      x[0][i] = static_cast<uint64_t>(a.value(begin + i).word());
      x[1][i] = static_cast<uint64_t>(b.value(begin + i).word());
    }
    loop(x[0], x[1], y);
    for (size_t i = 0; i < count; ++i)
      result.value[begin + i] = Wrapped(type, static_cast<int64_t>(y[i]));
  }
  return result;
}

/// Integer arithmetic is exact: operands with errors (casts of floats) carry over, plus one for the
/// truncation, as long as doubles hold what they become.
template <int kArity>
Bounded IntegerPointwise(Pw fn, DType type, absl::Span<const Bounded* const> args, size_t size) {
  const PwInfo& info = Info(fn);
  if constexpr (kArity == 2) {
    const IntegerLoop loop = size < kFewestTogether ? nullptr : IntegerLoopOf(fn, type);
    if (loop != nullptr && args[0]->exact && args[1]->exact)
      return ExactIntegers(loop, type, args, size);
  }
  Bounded result = Sized(size);
  for (size_t i = 0; i < size; ++i) {
    Number x[kArity];
    double reals[kArity], e[kArity];
    bool exact = true;
    for (int k = 0; k < kArity; ++k) {
      const Operand operand(*args[k]);
      x[k] = operand.value(i);
      reals[k] = x[k].real();
      e[k] = operand.error(i);
      exact &= e[k] == 0;
    }
    result.value[i] = EvalPointwise(fn, type, x);
    if (exact) continue;
    if (!info.of_bits) {
      const double unbounded = info.eval(reals);  // before it wraps around
      const double spread = Spread<kArity>(info, reals, e, unbounded);
      result.error[i] = ErrorOf(unbounded, spread + 1, 0, RoundingOf(type, 0));
      continue;
    }
    result.error[i] = ErrorOfBits(fn, type, result.value[i], x, e);
  }
  return Finished(std::move(result));
}

/// 1 where the operands' errors could turn the answer round, else 0.
Bounded Comparison(Pw fn, DType type, absl::Span<const Bounded* const> args, size_t size,
                   bool with_extreme) {
  const Operand a(*args[0]), b(*args[1]);
  const bool is_same = args[0] == args[1];
  const std::vector<bool>& sole = args[1]->sole;
  Bounded result = Sized(size);
  for (size_t i = 0; i < size; ++i) {
    const Number x[] = {a.value(i), b.value(i)};
    const double reach = a.error(i) + b.error(i);
    result.value[i] = EvalPointwise(fn, type, x);
    const bool is_certain =
        std::isfinite(reach) &&
        (is_same || (with_extreme && !sole.empty() && sole[sole.size() == 1 ? 0 : i]));
    const bool is_apart = std::fabs(x[0].real() - x[1].real()) > reach;
    result.error[i] = reach > 0 && !is_apart && !is_certain ? 1 : 0;
  }
  return Finished(std::move(result));
}

/// 1 where operands that are in doubt could turn the answer round, else 0.
Bounded Logic(Pw fn, absl::Span<const Bounded* const> args, size_t size) {
  Bounded result = Sized(size);
  for (size_t i = 0; i < size; ++i) {
    Number x[2];
    unsigned doubtful = 0;  // operands, by bits
    for (size_t k = 0; k < args.size(); ++k) {
      const Operand operand(*args[k]);
      x[k] = operand.value(i);
      doubtful |= unsigned{operand.error(i) > 0} << k;
    }
    result.value[i] = EvalPointwise(fn, DType::kBool, x);
    for (unsigned turned = 1; turned < 1u << args.size(); ++turned) {
      if ((turned & ~doubtful) != 0) continue;
      Number other[2];
      for (size_t k = 0; k < 2; ++k) other[k] = (turned >> k & 1) != 0 ? int{x[k] == 0} : x[k];
      if (!(EvalPointwise(fn, DType::kBool, other) == result.value[i])) result.error[i] = 1;
    }
  }
  return Finished(std::move(result));
}

/// Where the condition is in doubt, the bound covers both branches.
Bounded Selection(absl::Span<const Bounded* const> args, size_t size) {
  const Operand condition(*args[0]), if_true(*args[1]), if_false(*args[2]);
  Bounded result = Sized(size);
  for (size_t i = 0; i < size; ++i) {
    const bool holds = !(condition.value(i) == 0);
    const Operand& chosen = holds ? if_true : if_false;
    const Operand& other = holds ? if_false : if_true;
    result.value[i] = chosen.value(i);
    result.error[i] = chosen.error(i);
    if (condition.error(i) > 0) {
      result.error[i] =
          std::max(result.error[i], Distance(other.value(i), chosen.value(i)) + other.error(i));
    }
  }
  return Finished(std::move(result));
}

size_t CommonSize(absl::Span<const Bounded* const> args) {
  size_t size = 1;
  for (const Bounded* arg : args) {
    if (arg->size() != 1) size = arg->size();
  }
  return size;
}

}  // namespace

Bounded BoundedScalar(const Number& value, DType dtype) {
  const Number held = Stored(dtype, value);
  // What a float rounds stays as exact as a double holds it.
  if (IsFloat(dtype)) return Finished({{value.real()}, {Distance(held, value)}});
  return {{held}, {0}};
}

Bounded BoundedPointwise(Pw fn, DType operands, absl::Span<const Bounded* const> args,
                         bool with_extreme) {
  const size_t size = CommonSize(args);
  if (Info(fn).result == PwResult::kBool) return Comparison(fn, operands, args, size, with_extreme);
  if (Info(fn).of_bools) return Logic(fn, args, size);
  if (fn == Pw::kSelect) return Selection(args, size);
  CC_CHECK(args.size() == 1 || args.size() == 2);
  if (IsFloat(operands)) return FloatPointwise(fn, operands, args, size);
  return args.size() == 1 ? IntegerPointwise<1>(fn, operands, args, size)
                          : IntegerPointwise<2>(fn, operands, args, size);
}

Bounded BoundedCast(DType from, DType to, const Bounded& a) {
  const bool widens = IsFloat(from) && IsFloat(to) && UnitRoundoff(to) <= UnitRoundoff(from) &&
                      MinSubnormal(to) <= MinSubnormal(from);
  const Rounding rounding = RoundingOf(to, widens ? 0 : 1);
  const bool is_narrow = UnitRoundoff(to) > UnitRoundoff(DType::kF32);  // perhaps left in f32
  Bounded result = Sized(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const Number& number = a.value[i];
    const double x = number.real(), e = a.error[i];
    Number& value = result.value[i];
    double& error = result.error[i];
    if (to == DType::kBool) {
      value = Stored(to, number);
      error = e > 0 && !(std::fabs(x) > e) ? 1 : 0;
    } else if (IsInteger(to)) {
      value = Stored(to, number);
      if (e == 0) continue;
      const Number low = Stored(to, x - e), high = Stored(to, x + e);
      error = std::isinf(e) ? kUndetermined : std::max(Distance(high, value), Distance(value, low));
      const double greatest = std::max(std::fabs(low.real()), std::fabs(high.real()));
      const bool is_saturated = low == high && (value == Least(to) || value == Greatest(to));
      if (!is_saturated && greatest > rounding.limit) error = kUndetermined;
    } else {
      value = x;
      if (!std::isfinite(x)) {
        error = ErrorOfSpecial(e);
        if (!std::isinf(x) || HasInfinity(to)) continue;
        value = std::numeric_limits<double>::quiet_NaN();
        error = kUndetermined;  // an infinity where it is left in f32
        continue;
      }
      if (e == 0 && !IsFloat(from) && !is_narrow) {
        value = Stored(to, number);  // A known integer has one nearest number.
        continue;
      }
      const bool exact_integer = !IsFloat(from) && std::fabs(x) * UnitRoundoff(to) <= 1;
      const bool is_held = e == 0 && Stored(to, number) == number;  // and so is not rounded
      error = ErrorOf(x, e, std::fabs(x), exact_integer || is_held ? RoundingOf(to, 0) : rounding);
    }
  }
  return Finished(std::move(result));
}

namespace {

/// Bounds of sums of finite numbers, one from each of so many ranks.
class RankSums {
 public:
  RankSums(DType dtype, size_t ranks, const ReduceTerms& terms)
      : additions_(static_cast<double>(ranks) - 1), rounding_(RoundingOf(dtype, 1)) {
    const bool narrow = IsFloat(dtype) && UnitRoundoff(dtype) > UnitRoundoff(DType::kF32);
    const bool once = terms.numerics.sum_rounding == SumRounding::kOnce && !terms.crosses_nodes;
    rounds_once_ = narrow && once && additions_ > 0;
    if (rounds_once_) {
      if (additions_ > 1) rounding_.relative *= 2;  // a switch need not round to nearest
      return;
    }
    // An addition's rounding is relative to a partial sum, which has those of the additions before.
    rounding_.relative = std::expm1(additions_ * std::log1p(rounding_.relative));
    rounding_.absolute *= additions_ * (1 + rounding_.relative);
  }

  double Error(double value, double magnitude, double spread) const {
    if (!rounds_once_) return ErrorOf(value, spread, magnitude, rounding_);
    const double accumulated =
        additions_ * magnitude * (UnitRoundoff(DType::kF32) + UnitRoundoff(DType::kF64));
    return ErrorOf(value, spread + accumulated, std::fabs(value), rounding_);
  }

 private:
  const double additions_;
  Rounding rounding_;
  bool rounds_once_;
};

FoldKind FoldOf(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return FoldKind::kSum;
    case ReduceKind::kMax:
      return FoldKind::kMax;
    case ReduceKind::kMin:
      return FoldKind::kMin;
  }
  CC_CHECK(false);
}

}  // namespace

Bounded BoundedReduce(ReduceKind kind, DType dtype, absl::Span<const Bounded* const> ranks,
                      const ReduceTerms& terms) {
  const size_t size = CommonSize(ranks);
  const double most = RoundingOf(dtype, 1).limit;
  const RankSums sums(dtype, ranks.size(), terms);
  Bounded result = Sized(size);
  for (size_t i = 0; i < size; ++i) {
    double& error = result.error[i];
    if (kind != ReduceKind::kSum || !IsFloat(dtype)) {
      BoundedFold fold(FoldOf(kind), dtype);
      for (const Bounded* rank : ranks) fold.Add(Operand(*rank).value(i), Operand(*rank).error(i));
      const BoundedValue folded = fold.Finish(static_cast<int64_t>(ranks.size()));
      result.value[i] = folded.value;
      result.sole.push_back(folded.sole && absl::c_all_of(ranks, [&](const Bounded* rank) {
                              return !rank->sole.empty() && rank->sole[rank->size() == 1 ? 0 : i];
                            }));
      error = folded.value.is_nan() && terms.numerics.nans == Nans::kNone ? kUndetermined
                                                                          : folded.error;
      continue;
    }
    double value = 0;
    double magnitude = 0, spread = 0;
    bool special = false;
    int quantum = std::numeric_limits<int>::max();
    for (const Bounded* rank : ranks) {
      const double x = Operand(*rank).real(i), e = Operand(*rank).error(i);
      value += x;
      special |= !std::isfinite(x);
      magnitude += (std::isfinite(x) ? std::fabs(x) : 0) + e;
      spread += e;
      if (e == 0) quantum = std::min(quantum, LowestBit(x));
    }
    result.value[i] = value;
    const bool is_exact = spread == 0 && SumsExactly(magnitude, quantum, Precision(dtype));
    if (is_exact && !special && magnitude <= most) continue;
    // Whether a partial sum overflows depends on the order, so the magnitudes count.
    error = !(magnitude <= most) ? kUndetermined
            : special            ? 0
                                 : sums.Error(value, magnitude, spread);
  }
  return Finished(std::move(result));
}

}  // namespace coconet
