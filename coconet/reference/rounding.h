#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "coconet/base/dtype.h"

namespace coconet {

// The effect of rounding on the bounds of the interpreter's values (bounded.h).

inline constexpr double kUndetermined = std::numeric_limits<double>::infinity();
/// Doubles hold every integer up to here; no greater integer rounds to one of these.
inline constexpr double kExactIntegers = 9007199254740991.0;  // 2^53 - 1

/// What storing or computing in a type adds to a bound.
struct Rounding {
  double relative = 0;
  double absolute = 0;
  double limit = 0, least = 0;  // what lies above or below is not determined
};

/// `count` roundings. Types narrower than f32 are computed in f32 and may be stored, or not. The
/// interpreter's own arithmetic in double is counted too.
inline Rounding RoundingOf(DType type, double count) {
  if (!IsFloat(type)) {
    return {0, 0, std::min(MaxFinite(type), kExactIntegers),
            std::max(MinFinite(type), -kExactIntegers)};
  }
  if (count == 0) return {0, 0, MaxFinite(type), MinFinite(type)};
  const bool narrow = UnitRoundoff(type) > UnitRoundoff(DType::kF32);
  const double computed = count * UnitRoundoff(narrow ? DType::kF32 : type);
  const double stored = narrow ? UnitRoundoff(type) : 0;
  return {computed + stored + count * UnitRoundoff(DType::kF64), count * MinSubnormal(type),
          MaxFinite(type), MinFinite(type)};
}

/// The bound of a result that deviates by `spread` because of its operands, and whose roundings are
/// relative to `magnitude`.
inline double ErrorOf(double value, double spread, double magnitude, const Rounding& rounding) {
  if (magnitude == 0 && spread == 0) return 0;  // an exact 0, which nothing rounds
  const double error = spread + (magnitude + spread) * rounding.relative + rounding.absolute;
  const bool is_held = value + error <= rounding.limit && value - error >= rounding.least;
  return is_held ? error : kUndetermined;  // not held: NaN, too
}

/// Bits of a float's significand, the leading one included: integers of so many are exact.
inline int Precision(DType type) { return -std::ilogb(UnitRoundoff(type)); }

/// Whether an element of a float type is this number.
inline bool IsHeld(DType type, double value) {
  if (type == DType::kF32) return static_cast<double>(static_cast<float>(value)) == value;
  return type == DType::kF64 || Stored(type, value) == value;
}

/// The exponent of the lowest bit of a number that is set; of 0 the greatest int. Numbers whose
/// lowest bits are at 2^q or above are whole multiples of 2^q, and so are their sums.
inline int LowestBit(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value) << 1 >> 1, fraction = bits << 12 >> 12;
  const int exponent = static_cast<int>(bits >> 52);
  if (bits == 0) return std::numeric_limits<int>::max();
  return fraction != 0 ? std::countr_zero(fraction) + std::max(exponent, 1) - 1075
                       : exponent - 1023;
}

/// Whether sums, in any order, of whole multiples of 2^quantum with these magnitudes together are
/// exact with so many bits.
inline bool SumsExactly(double magnitude, int quantum, int precision) {
  return magnitude == 0 || magnitude <= std::ldexp(1.0, precision + quantum);
}

/// How far two values are apart: 0 for equal infinities and for two NaNs; infinite if only one is a
/// number.
inline double Distance(const Number& x, const Number& y) {
  if (x.is_integer() && y.is_integer())
    return std::fabs(static_cast<double>(x.integer() - y.integer()));
  const double a = x.real(), b = y.real();
  if (x == y || (x.is_nan() && y.is_nan())) return 0;
  const double distance = std::fabs(a - b);
  return std::isnan(distance) ? kUndetermined : distance;
}

/// The bound of an infinity or NaN that comes from an infinite or NaN operand, and deviates by
/// `spread`. If all operands are finite, the result is not determined: whether an intermediate
/// result overflows depends on how the operation is fused with others.
inline double ErrorOfSpecial(double spread) { return spread == 0 ? 0 : kUndetermined; }

}  // namespace coconet
