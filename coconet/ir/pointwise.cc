#include <algorithm>
#include <cmath>
#include <iterator>

#include "coconet/ir/op.h"

namespace coconet {
namespace {

using Args = const double*;

/// Without an exponential that overflows where the result is small, but not 0.
double Logistic(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

constexpr PwResult kSame = PwResult::kSame, kBool = PwResult::kBool;

// One row a function, in the order of Pw. Bounds hold for CUDA's f32 library without fast math and
// for glibc: k units in the last place are 2k roundings. Composed functions add those of their
// parts.
// clang-format off
constexpr PwInfo kPointwise[] = {
    {"add", 2, false, kSame, "$0 + $1", [](Args a) { return a[0] + a[1]; }, 1},
    {"sub", 2, false, kSame, "$0 - $1", [](Args a) { return a[0] - a[1]; }, 1},
    {"mul", 2, false, kSame, "$0 * $1", [](Args a) { return a[0] * a[1]; }, 1},
    {"div", 2, false, kSame, "$0 / $1", [](Args a) { return a[0] / a[1]; }, 1},
    {"neg", 1, false, kSame, "-$0", [](Args a) { return -a[0]; }, 0},
    {"abs", 1, false, kSame, "Abs($0)", [](Args a) { return std::fabs(a[0]); }, 0},
    {"min", 2, false, kSame, "Min($0, $1)", [](Args a) { return a[0] < a[1] ? a[0] : a[1]; }, 0},
    {"max", 2, false, kSame, "Max($0, $1)", [](Args a) { return a[0] > a[1] ? a[0] : a[1]; }, 0},
    {"pow", 2, true, kSame, "Pow($0, $1)", [](Args a) { return std::pow(a[0], a[1]); }, 16},
    {"sqrt", 1, true, kSame, "Sqrt($0)", [](Args a) { return std::sqrt(a[0]); }, 1},
    {"rsqrt", 1, true, kSame, "Rsqrt($0)", [](Args a) { return 1 / std::sqrt(a[0]); }, 4},
    {"exp", 1, true, kSame, "Exp($0)", [](Args a) { return std::exp(a[0]); }, 4},
    {"log", 1, true, kSame, "Log($0)", [](Args a) { return std::log(a[0]); }, 4},
    {"tanh", 1, true, kSame, "Tanh($0)", [](Args a) { return std::tanh(a[0]); }, 8},
    {"sigmoid", 1, true, kSame, "Sigmoid($0)", [](Args a) { return Logistic(a[0]); }, 8},
    {"relu", 1, false, kSame, "Relu($0)", [](Args a) { return 0 > a[0] ? 0 : a[0]; }, 0},
    // 1 + erf cancels for negative arguments: the error is relative to the argument.
    {"gelu", 1, true, kSame, "Gelu($0)",
     [](Args a) { return a[0] / 2 * std::erfc(-a[0] * M_SQRT1_2); }, 8,
     [](Args a) { return std::fabs(a[0]); }},
    // The sigmoid has no digits left below the smallest normal number (f32's, the largest of all).
    {"silu", 1, true, kSame, "Silu($0)", [](Args a) { return a[0] * Logistic(a[0]); }, 8,
     [](Args a) { return std::fabs(a[0]) * std::max(Logistic(a[0]), 0x1p-126); }},
    {"lt", 2, false, kBool, "Less($0, $1)", [](Args a) -> double { return a[0] < a[1]; }, 0},
    {"le", 2, false, kBool, "LessEqual($0, $1)", [](Args a) -> double { return a[0] <= a[1]; }, 0},
    {"gt", 2, false, kBool, "Greater($0, $1)", [](Args a) -> double { return a[0] > a[1]; }, 0},
    {"ge", 2, false, kBool, "GreaterEqual($0, $1)",
     [](Args a) -> double { return a[0] >= a[1]; }, 0},
    {"eq", 2, false, kBool, "EqualTo($0, $1)", [](Args a) -> double { return a[0] == a[1]; }, 0},
    {"ne", 2, false, kBool, "NotEqualTo($0, $1)", [](Args a) -> double { return a[0] != a[1]; }, 0},
    {"select", 3, false, kSame, "Select($0, $1, $2)",
     [](Args a) { return a[0] != 0 ? a[1] : a[2]; }, 0},
};
// clang-format on
static_assert(std::size(kPointwise) == static_cast<size_t>(Pw::kSelect) + 1);

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
  const double value = Info(fn).eval(args);
  const bool integer = !IsFloat(operands) && operands != DType::kBool;
  return integer && Info(fn).result == PwResult::kSame ? RoundedToInteger(operands, value) : value;
}

}  // namespace coconet
