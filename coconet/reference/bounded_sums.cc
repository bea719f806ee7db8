#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/base/casts.h"
#include "coconet/base/philox.h"
#include "coconet/base/status.h"
#include "coconet/reference/bounded.h"
#include "coconet/reference/rounding.h"

namespace coconet {

Bounded BoundedDropout(DType dtype, double rate, const Bounded& a, const std::vector<bool>& keep) {
  const double scale = 1 / (1 - rate);
  const Rounding rounding = RoundingOf(dtype, 2);  // the scale's own, and the product's
  int unused = 0;
  const bool divides_exactly = std::frexp(scale, &unused) == 0.5;
  Bounded result{std::vector<Number>(keep.size(), 0.0), std::vector<double>(keep.size())};
  for (size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    const size_t from = a.size() == 1 ? 0 : i;
    const double value = a.value[from].real() * scale;
    result.value[i] = value;
    const bool is_exact = a.error[from] == 0 && divides_exactly && IsHeld(dtype, value);
    result.error[i] = is_exact ? 0
                      : a.value[from].is_finite()
                          ? ErrorOf(value, a.error[from] * scale, std::fabs(value), rounding)
                          : ErrorOfSpecial(a.error[from]);
    result.exact &= result.error[i] == 0;
  }
  return result;
}

Bounded BoundedStochasticRound(const Bounded& a, const std::vector<uint32_t>& words) {
  const auto rounded = [](double value, uint32_t word) -> double {
    return absl::bit_cast<float>(
        RoundedByWord(absl::bit_cast<uint32_t>(static_cast<float>(value)), word));
  };
  Bounded result{std::vector<Number>(words.size()), std::vector<double>(words.size())};
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t from = a.size() == 1 ? 0 : i;
    const double value = a.value[from].real(), error = a.error[from];
    const double nearest = rounded(value, words[i]);
    result.value[i] = nearest;
    const double low = rounded(value - error, words[i]), high = rounded(value + error, words[i]);
    if (low == nearest && high == nearest) continue;
    result.error[i] = std::isfinite(low) && std::isfinite(high)
                          ? std::max(nearest - low, high - nearest)
                          : kUndetermined;
    result.exact = false;
  }
  return result;
}

BoundedFold::BoundedFold(FoldKind kind, DType dtype) : kind_(kind), dtype_(dtype) {
  const bool floats = IsFloat(dtype);
  const double greatest = HasInfinity(dtype) ? kUndetermined : MaxFinite(dtype);
  const double least = HasInfinity(dtype) ? -kUndetermined : MinFinite(dtype);
  extreme_ = up_ = down_ = kind == FoldKind::kMax ? least : greatest;
  others_ = kind == FoldKind::kMax ? -kUndetermined : kUndetermined;
  if (!floats && kind == FoldKind::kMax) integer_ = Least(dtype).integer();
  if (!floats && kind == FoldKind::kMin) integer_ = Greatest(dtype).integer();
}

void BoundedFold::Add(const Number& value, double error) {
  AddReal(value.real(), error);
  if (IsFloat(dtype_)) return;
  const absl::int128 integer = value.integer();
  switch (kind_) {
    case FoldKind::kMax:
      integer_ = std::max(integer_, integer);
      return;
    case FoldKind::kMin:
      integer_ = std::min(integer_, integer);
      return;
    case FoldKind::kSum:
    case FoldKind::kMean:
      integer_ += integer;
      return;
  }
}

BoundedValue BoundedFold::Finish(int64_t count, int parts) const {
  if (IsFloat(dtype_)) return FinishReal(count, parts);
  const Number value = Wrapped(dtype_, integer_);
  return {value, is_exact_ ? 0 : FinishReal(count, parts).error};
}

void BoundedFold::AddReal(double value, double error) {
  ++added_;
  is_exact_ &= error == 0;
  if (kind_ == FoldKind::kSum || kind_ == FoldKind::kMean) {
    sum_ += value;
    quantum_ = std::min(quantum_, LowestBit(value));
    special_ |= !std::isfinite(value);
    magnitude_ += (std::isfinite(value) ? std::fabs(value) : 0) + error;
    spread_ += error;
    return;
  }
  if (std::isnan(value)) {
    special_ = true;
    spread_ += error;
    return;
  }
  undetermined_ |= std::isinf(error);  // it may be a NaN
  const auto pick = [&](double a, double b) {
    return kind_ == FoldKind::kMax ? std::max(a, b) : std::min(a, b);
  };
  const double away = kind_ == FoldKind::kMax ? 1 : -1;
  if (added_ == 1 || away * (value - extreme_) > 0) {
    if (added_ > 1) others_ = pick(others_, extreme_ + away * extreme_error_);
    extreme_ = value;
    extreme_error_ = error;
  } else {
    others_ = pick(others_, value + away * error);
  }
  up_ = pick(up_, value + error);
  down_ = pick(down_, value - error);
}

BoundedValue BoundedFold::FinishReal(int64_t count, int parts) const {
  if (kind_ == FoldKind::kMax || kind_ == FoldKind::kMin) {
    if (special_) return {std::numeric_limits<double>::quiet_NaN(), ErrorOfSpecial(spread_)};
    if (undetermined_) return {extreme_, kUndetermined};
    if (added_ == 0 || std::isinf(extreme_))
      return {extreme_, extreme_ == up_ && extreme_ == down_ ? 0 : kUndetermined};
    const double nearest =
        kind_ == FoldKind::kMax ? extreme_ - extreme_error_ : extreme_ + extreme_error_;
    return {extreme_,
            ErrorOf(extreme_, std::max(std::fabs(up_ - extreme_), std::fabs(extreme_ - down_)), 0,
                    RoundingOf(dtype_, 0)),
            kind_ == FoldKind::kMax ? others_ < nearest : others_ > nearest};
  }
  if (kind_ == FoldKind::kMean && count == 0) return {std::numeric_limits<double>::quiet_NaN(), 0};
  const double divisor = kind_ == FoldKind::kMean ? static_cast<double>(count) : 1;
  const double value = sum_ / divisor;
  int unused = 0;
  Rounding rounding = RoundingOf(dtype_, 2);  // of the sum and of the quotient
  if (!(magnitude_ <= rounding.limit)) return {value, kUndetermined};
  if (special_) return {value, 0};
  // A mean may be a product with the reciprocal of the count.
  const bool divides_exactly = std::frexp(divisor, &unused) == 0.5;
  const int precision = Precision(dtype_ == DType::kF64 ? DType::kF64 : DType::kF32);
  if (is_exact_ && IsFloat(dtype_) && divides_exactly && IsHeld(dtype_, value) &&
      SumsExactly(magnitude_, quantum_, precision))
    return {value, 0};
  const double shared =
      parts == 1 ? 0 : parts * std::min(UnitRoundoff(dtype_), UnitRoundoff(DType::kF32));
  const double accumulated =
      magnitude_ * (static_cast<double>(added_) * UnitRoundoff(DType::kF64) + shared);
  return {value, ErrorOf(value, (spread_ + (IsFloat(dtype_) ? accumulated : 0)) / divisor,
                         std::fabs(value), rounding)};
}

namespace {

/// Bound of the rounding errors of a sum of `terms` products in single precision. The worst case,
/// a rounding of all magnitudes per term, would let a missing term pass in a long sum. Rounding
/// errors whose signs vary add up as a random walk: beyond kDeviations times the root of the sum of
/// their squares they come with a probability below 2 exp(-kDeviations^2 / 2) per element (Higham
/// and Mary, "A New Approach to Probabilistic Rounding Error Analysis", 2019, by Hoeffding's
/// inequality). Each error is relative to the partial sum, in any order that starts anywhere at
/// most |s_i| + |sum|. Errors of one sign, as of equal terms, show in a sum that is made that way.
class DotRounding {
 public:
  /// `least`: the greatest error of a sum or product that is almost 0.
  explicit DotRounding(double least) : least_(least) {}
  void Add(double a, double b) {
    const double term = a * b;
    sum_ += term;
    plain_ += static_cast<float>(a) * static_cast<float>(b);
    squares_ += sum_ * sum_;
    ++terms_;
  }
  /// `magnitude`: of all terms; `spread`: of what they deviate by.
  double Bound(double magnitude, double spread) const {
    constexpr double kDeviations = 8, kBias = 4;
    const double n = static_cast<double>(terms_), u = UnitRoundoff(DType::kF32);
    const double walk = std::sqrt(2 * (squares_ + n * sum_ * sum_));
    const double likely = kDeviations * u * (walk + std::sqrt(n) * spread) +
                          kBias * std::fabs(static_cast<double>(plain_) - sum_);
    magnitude += spread;
    return std::min(likely, n * u * magnitude) + n * UnitRoundoff(DType::kF64) * magnitude +
           n * least_;
  }

 private:
  double least_;
  int64_t terms_ = 0;
  double sum_ = 0, squares_ = 0;  // of partial sums
  float plain_ = 0;               // the sum in single precision, from the first term to the last
};

/// Bits behind the highest one of the greatest operand of an addition that tensor cores keep when
/// they add products of 8-bit floats (sm_89 and sm_90 do not document it; DeepSeek-AI, DeepSeek-V3
/// Technical Report, 2024, section 3.5.2, found 14 bits with the highest).
constexpr int kKeptBits = 13;

/// Bound of what tensor cores cut off in a sum of products of 8-bit floats: each of the terms that
/// are added at once, and of the sum before, loses less than a unit of the last bit that is kept of
/// the greatest of these. Sums are as in DotRounding, in any order at most |s_i| + |sum|.
class TensorCoreRounding {
 public:
  void Add(double term) {
    sum_ += term;
    greatest_term_ = std::max(greatest_term_, std::fabs(term));
    greatest_sum_ = std::max(greatest_sum_, std::fabs(sum_));
    ++terms_;
  }
  double Bound() const {
    constexpr double kAtOnce = 16;  // terms of the shallowest instruction
    const double greatest = std::max(greatest_term_, greatest_sum_ + std::fabs(sum_));
    return static_cast<double>(terms_) * (1 + 1 / kAtOnce) * std::ldexp(greatest, -kKeptBits);
  }

 private:
  double sum_ = 0, greatest_term_ = 0, greatest_sum_ = 0;
  int64_t terms_ = 0;
};

/// The least f32 that is not subnormal. Processors' dot products of bf16 (VDPBF16PS, TDPBF16PS)
/// take smaller operands, and give smaller results, as 0.
constexpr double kLeastNormal = 0x1p-126;

/// Whether a term that is infinite or NaN stays what it is wherever its factors are within their
/// bounds.
bool IsCertain(double a, double error_a, double b, double error_b) {
  if (std::isnan(a) || std::isnan(b)) return error_a == 0 && error_b == 0;
  const auto has_sign = [](double x, double e) { return e == 0 || std::fabs(x) > e; };
  return (std::isinf(a) && error_a == 0 && has_sign(b, error_b)) ||
         (std::isinf(b) && error_b == 0 && has_sign(a, error_a));
}

}  // namespace

int BoundedLine::Quantum() const {
  if (!quantum_.has_value()) {
    quantum_ = std::numeric_limits<int>::max();
    for (const double v : value) quantum_ = std::min(*quantum_, LowestBit(v));
  }
  return *quantum_;
}

BoundedLine BoundedScaled(const BoundedLine& line, const BoundedLine& scales, int64_t block) {
  const Rounding rounding = RoundingOf(DType::kF32, 1);
  BoundedLine scaled;
  for (size_t i = 0; i < line.value.size(); ++i) {
    const size_t at = i / static_cast<size_t>(block);
    const double x = line.value[i], scale = scales.value[at], value = x * scale;
    const double error_x = line.error.empty() ? 0 : line.error[i],
                 error_scale = scales.error.empty() ? 0 : scales.error[at];
    const double spread = error_x * std::fabs(scale) + error_scale * (std::fabs(x) + error_x);
    int unused = 0;
    const bool is_power = std::fabs(std::frexp(scale, &unused)) == 0.5;
    double error = 0;
    if (!std::isfinite(value)) {
      const bool is_certain = !std::isinf(scale) && IsCertain(x, error_x, scale, error_scale);
      error = is_certain ? 0 : kUndetermined;
    } else if (spread != 0 || !is_power || !IsHeld(DType::kF32, value)) {
      error = ErrorOf(value, spread, std::fabs(value), rounding);
    }
    scaled.value.push_back(value);
    scaled.error.push_back(error);
  }
  return scaled;
}

BoundedValue BoundedDot(DType dtype, const BoundedLine& a, const BoundedLine& b, bool of_floats8) {
  CC_CHECK(a.value.size() == b.value.size());
  const auto error_of = [](const BoundedLine& line, size_t i) {
    return line.error.empty() ? 0 : line.error[i];
  };
  double sum = 0, magnitude = 0, spread = 0;
  bool special = false;
  const bool flushes = dtype == DType::kBF16, is_given = a.error.empty() && b.error.empty();
  const auto may_be_0 = [&](double x) { return flushes && x != 0 && std::fabs(x) < kLeastNormal; };
  DotRounding rounding(flushes ? kLeastNormal : MinSubnormal(DType::kF32));
  TensorCoreRounding of_tensor_cores;
  const size_t count = a.value.size();
  const double *xs = a.value.data(), *ys = b.value.data();
  for (size_t i = 0; i < count; ++i) {
    const double x = xs[i], y = ys[i], term = x * y;
    sum += term;
    if (!std::isfinite(term)) {
      special = true;
      if (!IsCertain(x, error_of(a, i), y, error_of(b, i)) || may_be_0(x) || may_be_0(y))
        spread = kUndetermined;
      continue;
    }
    rounding.Add(x, y);
    if (of_floats8) of_tensor_cores.Add(term);
    magnitude += std::fabs(term);
    if (flushes && (may_be_0(x) || may_be_0(y))) spread += std::fabs(term);
    if (is_given) continue;
    spread += error_of(a, i) * std::fabs(y) + error_of(b, i) * (std::fabs(x) + error_of(a, i));
  }
  // Whether a partial sum overflows depends on the order, so the magnitudes count.
  if (!(magnitude + spread <= MaxFinite(DType::kF32))) return {sum, kUndetermined};
  if (special) return {sum, 0};
  const bool is_0 = a.Quantum() == INT32_MAX || b.Quantum() == INT32_MAX;  // each product
  if (spread == 0 && IsHeld(dtype, sum) &&
      (is_0 || SumsExactly(magnitude, a.Quantum() + b.Quantum(),
                           of_floats8 ? kKeptBits : Precision(DType::kF32))))
    return {sum, 0};
  if (of_floats8) spread += of_tensor_cores.Bound();
  return {sum, ErrorOf(sum, spread + rounding.Bound(magnitude, spread), std::fabs(sum),
                       RoundingOf(dtype, 1))};
}

}  // namespace coconet
