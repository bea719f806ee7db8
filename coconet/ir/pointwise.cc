#include "coconet/ir/pointwise.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace coconet {
namespace {

using Args = const double*;

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

/// An integer in two's complement; saturates.
int64_t Bits(double integer) {
  constexpr double kMost = 0x1p62;  // beyond 2^53 nothing is determined
  return static_cast<int64_t>(std::clamp(integer, -kMost, kMost));
}

/// Places that a shift moves bits by, as an exponent of 2.
int Places(double count) {
  constexpr int kAll = 1 << 10;
  return count >= 0 && count < kAll ? static_cast<int>(count) : kAll;
}

#define ROW(operands, text, kernel, value, ...)                         \
  {.name = text,                                                        \
   .arity = operands,                                                   \
   .kernel_expr = kernel,                                               \
   .eval = [](Args a) -> double { return static_cast<double>(value); }, \
   __VA_ARGS__},
#define UNARY(name, ...) ROW(1, __VA_ARGS__)
#define BINARY(name, ...) ROW(2, __VA_ARGS__)
#define TERNARY(name, ...) ROW(3, __VA_ARGS__)
constexpr PwInfo kPointwise[] = {
#include "coconet/ir/pointwise.inc"
};
#undef ROW
#undef UNARY
#undef BINARY
#undef TERNARY

/// Keeps the low `bits` bits of an integer, as two's complement or unsigned arithmetic does.
double Wrapped(double integer, int bits, bool is_signed) {
  const double modulus = std::ldexp(1.0, bits);
  const double least = is_signed ? -modulus / 2 : 0;
  const double low = std::fmod(integer, modulus);
  if (low < least) return low + modulus;
  return low >= least + modulus ? low - modulus : low;
}

double RoundedToInteger(DType type, double value) {
  if (!std::isfinite(value)) return 0;  // a division by zero
  const double integer = std::trunc(value);
  return Wrapped(integer, static_cast<int>(SizeOf(type)) * 8, IsSigned(type));
}

}  // namespace

const PwInfo& Info(Pw fn) { return kPointwise[static_cast<size_t>(fn)]; }

std::optional<Pw> FindPointwise(absl::string_view name) {
  for (size_t i = 0; i < std::size(kPointwise); ++i) {
    if (kPointwise[i].name == name) return static_cast<Pw>(i);
  }
  return std::nullopt;
}

absl::Span<const PwInfo> AllPointwise() { return kPointwise; }

double EvalPointwise(Pw fn, DType operands, const double* args) {
  const PwInfo& info = Info(fn);
  if (fn == Pw::kShiftRightLogical && args[0] < 0 && Places(args[1]) > 0) {
    // As the unsigned number of the same bits.
    const int bits = static_cast<int>(SizeOf(operands)) * 8, places = Places(args[1]);
    const uint64_t all = static_cast<uint64_t>(Bits(args[0])) & (~uint64_t{0} >> (64 - bits));
    return places < bits ? static_cast<double>(all >> places) : 0;
  }
  const double value = info.eval(args);
  if (IsFloat(operands) || operands == DType::kBool || info.result != PwResult::kSame) return value;
  // The greatest i64 is 2^63 as a double, which would wrap around.
  const bool is_operand = std::find(args, args + info.arity, value) != args + info.arity;
  return is_operand ? value : RoundedToInteger(operands, value);
}

}  // namespace coconet
