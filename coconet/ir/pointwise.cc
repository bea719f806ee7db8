#include "coconet/ir/pointwise.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace coconet {
namespace {

using Args = const double*;
constexpr int kMostOperands = 3;

/// Without an exponential that overflows where the result is small, but not 0.
double Logistic(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

bool PoleOfDiv(Args x, Args e) { return std::fabs(x[1]) <= e[1] && e[1] > 0; }

bool PoleOfPow(Args x, Args e) {
  const bool crosses_zero = std::fabs(x[0]) <= e[0] && e[0] > 0;
  // 1 to the power of NaN is 1, and so is NaN to the power of 0.
  const bool may_be_one = (std::isnan(x[1]) && std::fabs(x[0] - 1) <= e[0] && e[0] > 0) ||
                          (std::isnan(x[0]) && std::fabs(x[1]) <= e[1] && e[1] > 0);
  return may_be_one || (crosses_zero && x[1] - e[1] < 0) || (x[0] - e[0] < 0 && e[1] > 0);
}

/// A sine differs from that of a corner by no more than from that of the other, within a quarter.
bool PoleOfWave(Args, Args e) { return e[0] > 0.5; }

/// Whether the quotient's whole part is in doubt.
bool PoleOfRem(Args x, Args e) {
  if (e[0] == 0 && e[1] == 0) return false;
  const double n = std::fabs(x[0]), d = std::fabs(x[1]);
  if (!(d > e[1])) return true;
  return std::trunc((n - e[0]) / (d + e[1])) != std::trunc((n + e[0]) / (d - e[1]));
}

using IntegerArgs = const absl::int128*;
constexpr double kNoReal = std::numeric_limits<double>::quiet_NaN();

/// Modulo 2^128, as products of u64 need: what a Number does not hold stays beyond it.
absl::int128 Times(absl::int128 a, absl::int128 b) {
  return absl::int128(absl::uint128(a) * absl::uint128(b));
}

/// base^exponent; beyond what a Number holds where it is no integer, or a greater one.
absl::int128 PowerOf(absl::int128 base, absl::int128 exponent) {
  if (base == 1 || base == -1) return exponent % 2 == 0 ? 1 : base;
  if (base == 0 && exponent > 0) return 0;
  if (exponent < 0) return absl::Int128Max();
  absl::int128 power = 1;
  for (; exponent > 0 && Number::Holds(power); --exponent) power = Times(power, base);
  return power;
}

/// Whether a shift by `places` leaves some of `bits` bits.
bool IsShift(absl::int128 places, int bits) { return places >= 0 && places < bits; }
int Places(absl::int128 places) { return static_cast<int>(places); }

/// The unsigned number of the same bits.
absl::int128 Unsigned(absl::int128 integer, int bits) {
  return absl::Int128Low64(integer) & (~uint64_t{0} >> (64 - bits));
}

#define INTEGERS(...)                                                           \
  .of_integers = [](IntegerArgs a, [[maybe_unused]] int bits) -> absl::int128 { \
    return __VA_ARGS__;                                                         \
  }
#define ROW(operands, text, kernel, value, gradient, ...)                                \
  {.name = text,                                                                         \
   .arity = operands,                                                                    \
   .kernel_expr = kernel,                                                                \
   .eval = []([[maybe_unused]] Args a) -> double { return static_cast<double>(value); }, \
   __VA_ARGS__},
#define UNARY(name, ...) ROW(1, __VA_ARGS__)
#define BINARY(name, ...) ROW(2, __VA_ARGS__)
#define TERNARY(name, ...) ROW(3, __VA_ARGS__)
constexpr PwInfo kPointwise[] = {
#include "coconet/ir/pointwise.inc"
};
#undef ROW
#undef INTEGERS
#undef UNARY
#undef BINARY
#undef TERNARY

}  // namespace

const PwInfo& Info(Pw fn) { return kPointwise[static_cast<size_t>(fn)]; }

std::optional<Pw> FindPointwise(absl::string_view name) {
  for (size_t i = 0; i < std::size(kPointwise); ++i) {
    if (kPointwise[i].name == name) return static_cast<Pw>(i);
  }
  return std::nullopt;
}

absl::Span<const PwInfo> AllPointwise() { return kPointwise; }

Number EvalPointwise(Pw fn, DType operands, const Number* args) {
  const PwInfo& info = Info(fn);
  if (fn == Pw::kSelect) return args[0] == 0 ? args[2] : args[1];
  if (IsFloat(operands)) {
    double reals[kMostOperands];
    for (int i = 0; i < info.arity; ++i) reals[i] = args[i].real();
    const double value = info.eval(reals);
    return info.result == PwResult::kBool ? Number(static_cast<int>(value)) : Number(value);
  }
  absl::int128 integers[kMostOperands];
  for (int i = 0; i < info.arity; ++i) integers[i] = args[i].integer();
  const absl::int128 value = info.of_integers(integers, static_cast<int>(SizeOf(operands)) * 8);
  return Wrapped(info.result == PwResult::kBool ? DType::kBool : operands, value);
}

Number EvalNumbers(Pw fn, const Number* args) {
  const PwInfo& info = Info(fn);
  bool are_integers = true;
  absl::int128 integers[kMostOperands];
  double reals[kMostOperands];
  for (int i = 0; i < info.arity; ++i) {
    are_integers &= args[i].is_integer();
    if (are_integers) integers[i] = args[i].integer();
    reals[i] = args[i].real();
  }
  const bool is_negative_zero = fn == Pw::kNeg && args[0] == 0;
  if (are_integers && info.of_integers != nullptr && fn != Pw::kDiv && !is_negative_zero) {
    const absl::int128 value = info.of_integers(integers, 64);
    if (Number::Holds(value)) return Number::Of(value);
  }
  return info.eval(reals);
}

}  // namespace coconet
