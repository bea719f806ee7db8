#include "coconet/reference/bounded_arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

// Compiled for wider vectors, too, where a processor has them. Products and sums stay two
// roundings: the target compiles this without contraction to FMA.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define WIDE_VECTORS [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
#define WIDE_VECTORS
#endif

namespace coconet {
namespace {

/// How a loop tells whether a result of exact operands is no rounded one.
enum class Exactness : uint8_t {
  kOperand,  // it is an operand or its negative, which IsExact does not count
  kSum,      // by the part of a sum that rounding takes away
  kUnknown,  // the loop leaves such elements out
};

struct Add {
  static constexpr Exactness kExactness = Exactness::kSum;
  static double Of(double a, double b) { return a + b; }
  static double Addend(double b) { return b; }
};
struct Sub {
  static constexpr Exactness kExactness = Exactness::kSum;
  static double Of(double a, double b) { return a - b; }
  static double Addend(double b) { return -b; }
};
struct Mul {
  static constexpr Exactness kExactness = Exactness::kUnknown;
  static double Of(double a, double b) { return a * b; }
};
struct Div {
  static constexpr Exactness kExactness = Exactness::kUnknown;
  static double Of(double a, double b) { return a / b; }
};
struct Min {
  static constexpr Exactness kExactness = Exactness::kOperand;
  static double Of(double a, double b) { return a < b ? a : b; }
};
struct Max {
  static constexpr Exactness kExactness = Exactness::kOperand;
  static double Of(double a, double b) { return a > b ? a : b; }
};
struct Neg {
  static constexpr Exactness kExactness = Exactness::kOperand;
  static double Of(double a, double) { return -a; }
};
struct Abs {
  static constexpr Exactness kExactness = Exactness::kOperand;
  static double Of(double a, double) { return std::fabs(a); }
};
struct Relu {
  static constexpr Exactness kExactness = Exactness::kOperand;
  static double Of(double a, double) { return 0 > a ? 0 : a; }
};

constexpr double kMost = std::numeric_limits<double>::max();
constexpr double kNotComputed = std::numeric_limits<double>::quiet_NaN();

/// The largest deviation from `y` at the corners of the operands' bounds, of finite numbers; and in
/// `reach` a number that is not finite if an operand or a corner is not.
template <class F, int kArity>
[[gnu::always_inline]] inline double SpreadOf(double a, double b, double ea, double eb, double y,
                                              double& reach) {
  const double low = F::Of(a - ea, b - eb), high = F::Of(a + ea, b + eb);
  double spread = std::max(std::fabs(low - y), std::fabs(high - y));
  reach = std::fabs(a) + std::fabs(b) + std::fabs(low) + std::fabs(high) + std::fabs(y) + (ea + eb);
  if constexpr (kArity == 2) {
    const double left = F::Of(a - ea, b + eb), right = F::Of(a + ea, b - eb);
    spread = std::max(spread, std::max(std::fabs(left - y), std::fabs(right - y)));
    reach += std::fabs(left) + std::fabs(right);
  }
  return spread;
}

/// `kHolds`: the type of the elements is T, whose numbers are told apart by a conversion. `kOne`:
/// the operands, by bit, that have one element.
template <class F, int kArity, class T, bool kHolds, unsigned kOne>
WIDE_VECTORS FloatFindings Loop(const FloatOperand& first, const FloatOperand& second,
                                const Rounding& rounding, double* __restrict values,
                                double* __restrict errors) {
  constexpr size_t kStepA = (kOne & 1) != 0 ? 0 : 1, kStepB = (kOne & 2) != 0 ? 0 : 1;
  const double relative = rounding.relative, absolute = rounding.absolute;
  const double limit = rounding.limit, least = rounding.least;
  const double *xa = first.x, *xb = second.x, *error_a = first.error, *error_b = second.error;
  for (size_t i = 0; i < kTogether; ++i) {
    const double a = xa[i * kStepA], ea = error_a[i * kStepA];
    const double b = kArity == 2 ? xb[i * kStepB] : 0, eb = kArity == 2 ? error_b[i * kStepB] : 0;
    const double y = F::Of(a, b);
    double reach = 0;
    const double spread = SpreadOf<F, kArity>(a, b, ea, eb, y, reach), magnitude = std::fabs(y);
    const bool is_given = (ea == 0) & (eb == 0);
    bool is_exact = (magnitude == 0) & (spread == 0), is_left = !(reach <= kMost);
    if constexpr (std::is_same_v<F, Div>) is_left |= std::fabs(b) <= eb;  // a pole
    if constexpr (F::kExactness == Exactness::kSum) {
      const double addend = F::Addend(b), part = y - a;
      const double lost = (a - (y - part)) + (addend - part);
      is_left |= is_given & !kHolds;
      is_exact |= is_given & (static_cast<double>(static_cast<T>(y)) == y) & (lost == 0);
    }
    if constexpr (F::kExactness == Exactness::kUnknown) is_left |= is_given;
    double error = spread + (magnitude + spread) * relative + absolute;
    const bool is_held = (y + error <= limit) & (y - error >= least);
    error = is_held ? error : kUndetermined;
    error = is_exact ? 0 : error;
    values[i] = y;
    errors[i] = is_left ? kNotComputed : error;
  }
  // A loop of its own: compilers vectorize neither with the other.
  uint64_t left = 0, inexact = 0;
  for (size_t i = 0; i < kTogether; ++i) {
    left |= errors[i] != errors[i] ? uint64_t{1} : 0;
    inexact |= std::bit_cast<uint64_t>(errors[i]);
  }
  return {left != 0, inexact != 0};
}

template <class F, int kArity, unsigned kOne>
FloatLoop LoopFor(DType type) {
  if (type == DType::kF64) return Loop<F, kArity, double, true, kOne>;
  if (type == DType::kF32) return Loop<F, kArity, float, true, kOne>;
  return Loop<F, kArity, float, false, kOne>;
}

template <class F, int kArity>
FloatLoop LoopFor(DType type, unsigned one) {
  if constexpr (kArity == 2) {
    if (one == 1) return LoopFor<F, 2, 1>(type);
    if (one == 2) return LoopFor<F, 2, 2>(type);
  }
  return one == 0 ? LoopFor<F, kArity, 0>(type) : nullptr;
}

template <class F>
void IntegersLoop(const uint64_t* a, const uint64_t* b, uint64_t* results) {
  for (size_t i = 0; i < kTogether; ++i) results[i] = F()(a[i], b[i]);
}
template <class F>
IntegerLoop LoopOfIntegers(F) {
  return IntegersLoop<F>;
}

}  // namespace

FloatLoop FloatLoopOf(Pw fn, DType type, unsigned one) {
  switch (fn) {
    case Pw::kAdd:
      return LoopFor<Add, 2>(type, one);
    case Pw::kSub:
      return LoopFor<Sub, 2>(type, one);
    case Pw::kMul:
      return LoopFor<Mul, 2>(type, one);
    case Pw::kDiv:
      return LoopFor<Div, 2>(type, one);
    case Pw::kMin:
      return LoopFor<Min, 2>(type, one);
    case Pw::kMax:
      return LoopFor<Max, 2>(type, one);
    case Pw::kNeg:
      return LoopFor<Neg, 1>(type, one);
    case Pw::kAbs:
      return LoopFor<Abs, 1>(type, one);
    case Pw::kRelu:
      return LoopFor<Relu, 1>(type, one);
    default:
      return nullptr;
  }
}

IntegerLoop IntegerLoopOf(Pw fn, DType type) {
  const bool is_signed_word = type != DType::kU64;  // all numbers are, in 64 bits
  switch (fn) {
    case Pw::kAdd:
      return LoopOfIntegers([](uint64_t a, uint64_t b) { return a + b; });
    case Pw::kSub:
      return LoopOfIntegers([](uint64_t a, uint64_t b) { return a - b; });
    case Pw::kMul:
      return LoopOfIntegers([](uint64_t a, uint64_t b) { return a * b; });
    case Pw::kBitAnd:
      return LoopOfIntegers([](uint64_t a, uint64_t b) { return a & b; });
    case Pw::kBitOr:
      return LoopOfIntegers([](uint64_t a, uint64_t b) { return a | b; });
    case Pw::kBitXor:
      return LoopOfIntegers([](uint64_t a, uint64_t b) { return a ^ b; });
    case Pw::kMin:
      return !is_signed_word ? nullptr : LoopOfIntegers([](uint64_t a, uint64_t b) {
        return static_cast<int64_t>(a) < static_cast<int64_t>(b) ? a : b;
      });
    case Pw::kMax:
      return !is_signed_word ? nullptr : LoopOfIntegers([](uint64_t a, uint64_t b) {
        return static_cast<int64_t>(a) > static_cast<int64_t>(b) ? a : b;
      });
    default:
      return nullptr;
  }
}

}  // namespace coconet

#undef WIDE_VECTORS
