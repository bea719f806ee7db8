#include "coconet/reference/bounded.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/reference/bounded_arithmetic.h"
#include "coconet/reference/bounded_bits.h"
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

/// Elements from which on loops over some of them together are worth it.
constexpr size_t kFewest = 8;

Bounded Sized(size_t size) { return {std::vector<Number>(size), std::vector<double>(size)}; }

Bounded Finished(Bounded result) {
  result.exact =
      std::all_of(result.error.begin(), result.error.end(), [](double e) { return e == 0; });
  return result;
}

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

/// Whether the result of exact operands is no rounded one, in whatever type it is computed.
bool IsExact(Pw fn, DType type, const double* x, double y) {
  if (!std::isfinite(y) || !IsHeld(type, y)) return false;
  switch (fn) {
    case Pw::kAdd:
    case Pw::kSub: {
      const double b = fn == Pw::kAdd ? x[1] : -x[1], virtual_b = y - x[0];
      return (x[0] - (y - virtual_b)) + (b - virtual_b) == 0;  // Knuth's TwoSum
    }
    case Pw::kMul:
      return std::fma(x[0], x[1], -y) == 0;
    case Pw::kDiv:
      return x[1] != 0 && std::fma(y, x[1], -x[0]) == 0;
    case Pw::kSqrt:
      return std::fma(y, y, -x[0]) == 0;
    default:
      return false;
  }
}

/// One element of a function of floats, and its bound. `exact`: all operands' errors are 0.
template <int kArity>
BoundedValue FloatElement(Pw fn, DType type, const PwInfo& info, const Rounding& rounding,
                          const double* x, const double* e, bool exact) {
  const double y = info.eval(x);
  const bool is_exact = exact || std::all_of(e, e + kArity, [](double v) { return v == 0; });
  if (is_exact && IsExact(fn, type, x, y)) return {y, 0};
  double spread = exact ? 0 : Spread<kArity>(info, x, e, y);
  if (spread > 0 && info.makes_numbers) spread += std::fabs(y) * UnitRoundoff(type);
  const double magnitude = info.magnitude == nullptr ? std::fabs(y) : info.magnitude(x);
  // A NaN of finite operands is one wherever they lie outside of the function's domain; an
  // infinity may be an overflow.
  const bool special =
      std::isnan(y) ||
      (std::isinf(y) && !std::all_of(x, x + kArity, [](double v) { return std::isfinite(v); }));
  return {y, special ? ErrorOfSpecial(spread) : ErrorOf(y, spread, magnitude, rounding)};
}

/// Elements from `begin` on of an operand; behind the last of `count` ones, whatever numbers.
void Load(const Operand& operand, size_t begin, size_t count, double* values, double* errors) {
  if (operand.stride == 0) {
    std::fill_n(values, kTogether, operand.real(0));
    std::fill_n(errors, kTogether, operand.error(0));
    return;
  }
  for (size_t i = 0; i < count; ++i) values[i] = operand.values[begin + i].real();
  std::copy_n(operand.errors + begin, count, errors);
  std::fill(values + count, values + kTogether, 1);
  std::fill(errors + count, errors + kTogether, 0);
}

template <int kArity>
Bounded FloatPointwise(Pw fn, DType type, absl::Span<const Bounded* const> args, size_t size) {
  const PwInfo& info = Info(fn);
  const Rounding rounding = RoundingOf(type, info.ulps);
  std::vector<Operand> operands;
  bool exact = true;
  for (const Bounded* arg : args) {
    operands.emplace_back(*arg);
    exact &= arg->exact;
  }
  Bounded result = Sized(size);
  const auto compute = [&](size_t i) {
    double x[kArity], e[kArity];
    for (int k = 0; k < kArity; ++k) {
      x[k] = operands[k].real(i);
      e[k] = operands[k].error(i);
    }
    const BoundedValue element = FloatElement<kArity>(fn, type, info, rounding, x, e, exact);
    result.value[i] = element.value;
    result.error[i] = element.error;
  };
  const FloatLoop loop = size < kFewest ? nullptr : FloatLoopOf(fn, type);
  for (size_t begin = 0; begin < size; begin += kTogether) {
    const size_t count = std::min(kTogether, size - begin);
    FloatOperands in;
    FloatResults out;
    if (loop != nullptr) {
      for (int k = 0; k < kArity; ++k) Load(operands[k], begin, count, in.x[k], in.error[k]);
      loop(in, rounding, out);
    }
    for (size_t i = 0; i < count; ++i) {
      if (loop == nullptr || std::isnan(out.error[i])) {
        compute(begin + i);
        continue;
      }
      result.value[begin + i] = out.value[i];
      result.error[begin + i] = out.error[i];
    }
  }
  return Finished(std::move(result));
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
    const IntegerLoop loop = size < kFewest ? nullptr : IntegerLoopOf(fn, type);
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
  if (IsFloat(operands)) {
    return args.size() == 1 ? FloatPointwise<1>(fn, operands, args, size)
                            : FloatPointwise<2>(fn, operands, args, size);
  }
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

/// The bound of a sum over so many ranks, of finite numbers.
double ErrorOfSum(DType dtype, size_t ranks, double value, double magnitude, double spread,
                  const ReduceTerms& terms) {
  const double additions = static_cast<double>(ranks) - 1;
  Rounding rounding = RoundingOf(dtype, 1);
  const bool narrow = IsFloat(dtype) && UnitRoundoff(dtype) > UnitRoundoff(DType::kF32);
  const bool once = terms.numerics.sum_rounding == SumRounding::kOnce && !terms.crosses_nodes;
  if (narrow && once && additions > 0) {
    const double accumulated =
        additions * magnitude * (UnitRoundoff(DType::kF32) + UnitRoundoff(DType::kF64));
    if (additions > 1) rounding.relative *= 2;  // a switch need not round to nearest
    return ErrorOf(value, spread + accumulated, std::fabs(value), rounding);
  }
  // An addition's rounding is relative to a partial sum, which has those of the additions before.
  rounding.relative = std::expm1(additions * std::log1p(rounding.relative));
  rounding.absolute *= additions * (1 + rounding.relative);
  return ErrorOf(value, spread, magnitude, rounding);
}

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
                                 : ErrorOfSum(dtype, ranks.size(), value, magnitude, spread, terms);
  }
  return Finished(std::move(result));
}

}  // namespace coconet
