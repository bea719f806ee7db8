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
  Bounded result{std::vector<double>(keep.size()), std::vector<double>(keep.size())};
  for (size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    const size_t from = a.size() == 1 ? 0 : i;
    result.value[i] = a.value[from] * scale;
    result.error[i] = std::isfinite(a.value[from]) ? ErrorOf(result.value[i], a.error[from] * scale,
                                                             std::fabs(result.value[i]), rounding)
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
  Bounded result{std::vector<double>(words.size()), std::vector<double>(words.size())};
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t from = a.size() == 1 ? 0 : i;
    const double value = a.value[from], error = a.error[from];
    result.value[i] = rounded(value, words[i]);
    const double low = rounded(value - error, words[i]), high = rounded(value + error, words[i]);
    if (low == result.value[i] && high == result.value[i]) continue;
    result.error[i] = std::isfinite(low) && std::isfinite(high)
                          ? std::max(result.value[i] - low, high - result.value[i])
                          : kUndetermined;
    result.exact = false;
  }
  return result;
}

BoundedFold::BoundedFold(FoldKind kind, DType dtype) : kind_(kind), dtype_(dtype) {
  const bool floats = IsFloat(dtype);
  const double greatest = floats ? kUndetermined : MaxFinite(dtype);
  const double least = floats ? -kUndetermined : dtype == DType::kU8 ? 0 : -MaxFinite(dtype) - 1;
  extreme_ = up_ = down_ = kind == FoldKind::kMax ? least : greatest;
}

void BoundedFold::Add(double value, double error) {
  ++added_;
  if (kind_ == FoldKind::kSum || kind_ == FoldKind::kMean) {
    sum_ += value;
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
  const auto pick = [&](double a, double b) {
    return kind_ == FoldKind::kMax ? std::max(a, b) : std::min(a, b);
  };
  extreme_ = pick(extreme_, value);
  up_ = pick(up_, value + error);
  down_ = pick(down_, value - error);
}

BoundedValue BoundedFold::Finish(int64_t count, int parts) const {
  if (kind_ == FoldKind::kMax || kind_ == FoldKind::kMin) {
    if (special_) return {std::numeric_limits<double>::quiet_NaN(), ErrorOfSpecial(spread_)};
    if (added_ == 0 || std::isinf(extreme_))
      return {extreme_, extreme_ == up_ && extreme_ == down_ ? 0 : kUndetermined};
    return {extreme_,
            ErrorOf(extreme_, std::max(std::fabs(up_ - extreme_), std::fabs(extreme_ - down_)), 0,
                    RoundingOf(dtype_, 0))};
  }
  const double divisor = kind_ == FoldKind::kMean ? static_cast<double>(count) : 1;
  const double value = sum_ / divisor;
  Rounding rounding = RoundingOf(dtype_, 2);  // of the sum and of the quotient
  if (!(magnitude_ <= rounding.limit)) return {value, kUndetermined};
  if (special_) return {value, 0};
  const double shared =
      parts == 1 ? 0 : parts * std::min(UnitRoundoff(dtype_), UnitRoundoff(DType::kF32));
  const double accumulated =
      magnitude_ * (static_cast<double>(added_) * UnitRoundoff(DType::kF64) + shared);
  return {value, ErrorOf(value, (spread_ + (IsFloat(dtype_) ? accumulated : 0)) / divisor,
                         std::fabs(value), rounding)};
}

BoundedValue BoundedDot(DType dtype, const BoundedLine& a, const BoundedLine& b) {
  CC_CHECK(a.value.size() == b.value.size());
  const size_t size = a.value.size();
  double sum = 0, magnitude = 0, spread = 0;
  for (size_t i = 0; i < size; ++i) {
    sum += a.value[i] * b.value[i];
    magnitude += std::fabs(a.value[i] * b.value[i]);
  }
  for (size_t i = 0; i < a.error.size(); ++i) spread += a.error[i] * std::fabs(b.value[i]);
  for (size_t i = 0; i < b.error.size(); ++i)
    spread += b.error[i] * (std::fabs(a.value[i]) + (a.error.empty() ? 0 : a.error[i]));
  const double roundings = static_cast<double>(size) * UnitRoundoff(DType::kF32) +
                           static_cast<double>(size) * UnitRoundoff(DType::kF64);
  if (!(magnitude + spread <= MaxFinite(dtype))) return {sum, kUndetermined};
  const double accumulated =
      (magnitude + spread) * roundings + static_cast<double>(size) * MinSubnormal(DType::kF32);
  return {sum, ErrorOf(sum, spread + accumulated, std::fabs(sum), RoundingOf(dtype, 1))};
}

}  // namespace coconet
