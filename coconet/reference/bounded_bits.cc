#include "coconet/reference/bounded_bits.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "coconet/reference/rounding.h"

namespace coconet {
namespace {

/// The integers of a type that are at most `error` away from a value.
struct IntegerRange {
  absl::int128 least, most;
  bool is_one() const { return least == most; }
};
std::optional<IntegerRange> RangeOf(DType type, const Number& value, double error) {
  if (!(error < 0x1p62) || !value.is_integer()) return std::nullopt;
  const absl::int128 reach(std::ceil(error));
  return IntegerRange{std::max(value.integer() - reach, Least(type).integer()),
                      std::min(value.integer() + reach, Greatest(type).integer())};
}

/// The distance of the farther end, where all numbers between the ends lie between these results.
double ErrorOfEnds(const Number& value, const Number& one_end, const Number& other_end) {
  return std::max(Distance(one_end, value), Distance(other_end, value));
}

/// The low bits that numbers of a range may have otherwise than each other.
absl::int128 VaryingBits(const IntegerRange& range) {
  absl::int128 bits = range.least ^ range.most;
  for (int places = 1; places < 128; places *= 2) bits |= bits >> places;
  return bits;
}

double ErrorOfRanges(Pw fn, DType type, const Number& value, const IntegerRange& a,
                     const IntegerRange& b) {
  const auto at = [&](const absl::int128& operand) {
    const Number operands[] = {Number(Wrapped(type, operand)), Number(Wrapped(type, b.least))};
    return EvalPointwise(fn, type, operands);
  };
  const bool is_signed = Least(type).integer() < 0;
  const absl::int128 a_varies = VaryingBits(a), b_varies = VaryingBits(b);
  absl::int128 varies = a_varies | b_varies;
  switch (fn) {
    case Pw::kBitNot:
      return ErrorOfEnds(value, at(a.least), at(a.most));
    case Pw::kBitAnd:
      varies = (a_varies & (b.least | b_varies)) | (b_varies & (a.least | a_varies));
      break;
    case Pw::kBitOr:
      varies = (a_varies & (~b.least | b_varies)) | (b_varies & (~a.least | a_varies));
      break;
    case Pw::kBitXor:
      break;
    case Pw::kShiftRight:
      return b.is_one() ? ErrorOfEnds(value, at(a.least), at(a.most)) : kUndetermined;
    case Pw::kShiftRightLogical:
      return b.is_one() && (a.least < 0) == (a.most < 0)
                 ? ErrorOfEnds(value, at(a.least), at(a.most))
                 : kUndetermined;
    case Pw::kShiftLeft: {
      const int bits = 8 * static_cast<int>(SizeOf(type));
      if (!b.is_one() || b.least < 0 || b.least >= bits) return b.is_one() ? 0 : kUndetermined;
      const int places = static_cast<int>(b.least);
      const bool wraps = (a.least << places) < Least(type).integer() ||
                         (a.most << places) > Greatest(type).integer();
      return wraps ? kUndetermined : ErrorOfEnds(value, at(a.least), at(a.most));
    }
    default:
      return kUndetermined;
  }
  // The sign is one of them where the ends have two signs.
  const bool is_bounded = varies >= 0 && (!is_signed || varies <= Greatest(type).integer());
  return is_bounded ? static_cast<double>(varies) : kUndetermined;
}

/// The signed integers of as many bits.
DType SignedOf(DType type) {
  switch (SizeOf(type)) {
    case 1:
      return DType::kI8;
    case 2:
      return DType::kI16;
    case 4:
      return DType::kI32;
    default:
      return DType::kI64;
  }
}

/// The error of a number with the bits of one that is in doubt: of numbers of one sign the bits
/// grow as the numbers do, or shrink.
double ErrorOfBitCast(DType from, DType to, const Number& x, double error, const Number& value) {
  if (!std::isfinite(error)) return kUndetermined;
  Number ends[2];
  if (IsFloat(from)) {
    if (IsFloat(to) || !(std::fabs(x.real()) > error)) return kUndetermined;
    ends[0] = Stored(from, x.real() - error), ends[1] = Stored(from, x.real() + error);
    if (!ends[0].is_finite() || !ends[1].is_finite() || ends[0] == 0 || ends[1] == 0)
      return kUndetermined;
  } else {
    const std::optional<IntegerRange> range = RangeOf(from, x, error);
    if (!range.has_value()) return kUndetermined;
    ends[0] = Wrapped(from, range->least), ends[1] = Wrapped(from, range->most);
  }
  Number results[2];
  for (int i = 0; i < 2; ++i) {
    results[i] = BitCastElement(from, to, ends[i]);
    // Bits whose highest differs are of two signs, in one of the types.
    const Number bits = BitCastElement(from, SignedOf(from), ends[i]);
    const Number others = BitCastElement(from, SignedOf(from), x);
    if ((bits.integer() < 0) != (others.integer() < 0)) return kUndetermined;
    if (IsFloat(to) && !results[i].is_finite()) return kUndetermined;
  }
  return ErrorOfEnds(value, results[0], results[1]);
}

}  // namespace

double ErrorOfBits(Pw fn, DType type, const Number& value, const Number* operands,
                   const double* errors) {
  const int last = Info(fn).arity - 1;
  const std::optional<IntegerRange> a = RangeOf(type, operands[0], errors[0]),
                                    b = RangeOf(type, operands[last], errors[last]);
  return a.has_value() && b.has_value() ? ErrorOfRanges(fn, type, value, *a, *b) : kUndetermined;
}

Bounded BoundedBitCast(DType from, DType to, const Bounded& a) {
  Bounded result{std::vector<Number>(a.size()), std::vector<double>(a.size())};
  for (size_t i = 0; i < a.size(); ++i) {
    const Number& x = a.value[i];
    result.value[i] = BitCastElement(from, to, x);
    // The bits of a zero and of NaN are not determined.
    if (IsFloat(from) && (x == 0 || x.is_nan())) {
      result.error[i] = kUndetermined;
    } else if (a.error[i] > 0) {
      result.error[i] = ErrorOfBitCast(from, to, x, a.error[i], result.value[i]);
    }
  }
  result.exact = absl::c_all_of(result.error, [](double error) { return error == 0; });
  return result;
}

}  // namespace coconet
