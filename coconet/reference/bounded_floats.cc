#include "coconet/reference/bounded_floats.h"

#include "coconet/reference/bounded.h"

namespace coconet {
namespace {

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

template <int kArity>
bool Compute(Pw fn, DType type, const FloatColumn* args, size_t count, double* values,
             double* errors) {
  const PwInfo& info = Info(fn);
  const Rounding rounding = RoundingOf(type, info.ulps);
  bool exact = true;
  size_t step[2] = {};
  unsigned one = 0;
  for (int k = 0; k < kArity; ++k) {
    exact &= args[k].exact;
    step[k] = args[k].is_one ? 0 : 1;
    one |= unsigned{args[k].is_one} << k;
  }
  const FloatLoop loop = count < kFewestTogether ? nullptr : FloatLoopOf(fn, type, one);
  bool is_exact = true;  // of the results
  for (size_t begin = 0; begin < count; begin += kTogether) {
    FloatFindings found{.left = true};
    if (loop != nullptr) {
      FloatOperand operands[2] = {};
      for (int k = 0; k < kArity; ++k)
        operands[k] = {args[k].value + begin * step[k], args[k].error + begin * step[k]};
      found = loop(operands[0], operands[1], rounding, values + begin, errors + begin);
    }
    if (!found.left && !found.inexact) continue;
    const size_t end = std::min(begin + kTogether, count);
    for (size_t i = begin; found.left && i < end; ++i) {
      if (loop != nullptr && !std::isnan(errors[i])) continue;
      double x[kArity], e[kArity];
      for (int k = 0; k < kArity; ++k) {
        x[k] = args[k].value[i * step[k]];
        e[k] = args[k].error[i * step[k]];
      }
      const BoundedValue element = FloatElement<kArity>(fn, type, info, rounding, x, e, exact);
      values[i] = element.value.real();
      errors[i] = element.error;
    }
    is_exact = is_exact &&
               std::all_of(errors + begin, errors + end, [](double error) { return error == 0; });
  }
  return is_exact;
}

}  // namespace

bool ComputeFloats(Pw fn, DType type, absl::Span<const FloatColumn> args, size_t count,
                   double* values, double* errors) {
  return args.size() == 1 ? Compute<1>(fn, type, args.data(), count, values, errors)
                          : Compute<2>(fn, type, args.data(), count, values, errors);
}

}  // namespace coconet
