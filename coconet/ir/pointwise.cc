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

#define ROW(operands, text, kernel, value, ...)    \
  {.name = text,                                   \
   .arity = operands,                              \
   .kernel_expr = kernel,                          \
   .eval = [](Args a) -> double { return value; }, \
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
  return Wrapped(integer, static_cast<int>(SizeOf(type)) * 8,
                 type == DType::kI32 || type == DType::kI64);
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
  const double value = info.eval(args);
  if (IsFloat(operands) || operands == DType::kBool || info.result != PwResult::kSame) return value;
  // The greatest i64 is 2^63 as a double, which would wrap around.
  const bool is_operand = std::find(args, args + info.arity, value) != args + info.arity;
  return is_operand ? value : RoundedToInteger(operands, value);
}

}  // namespace coconet
