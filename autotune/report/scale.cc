#include "autotune/report/scale.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coconet {
namespace {

constexpr double kRoom = 0.04;  // of the axis, at each end

/// The numbers of `factors` times powers of ten, every `step`th power, within the ends.
std::vector<double> Within(double low, double high, const std::vector<double>& factors, int step) {
  std::vector<double> within;
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  for (int power = static_cast<int>(std::floor(std::log10(low))); power <= last; ++power) {
    if (power % step != 0) continue;
    for (double factor : factors) {
      const double tick = factor * std::pow(10.0, power);
      if (tick >= low && tick <= high) within.push_back(tick);
    }
  }
  return within;
}

/// `value` in the largest unit that it reaches.
std::string InUnits(double value, const std::vector<const char*>& units, double first) {
  value /= first;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.3g%s", value, units[unit]);
}

}  // namespace

LogScale::LogScale(const std::vector<double>& values) {
  double low = 0, high = 0;
  for (double value : values) {
    if (!(value > 0) || !std::isfinite(value)) continue;
    low = low == 0 ? value : std::min(low, value);
    high = std::max(high, value);
  }
  if (low == 0) return;
  // At least a tenth, so that what is nearly equal is drawn as nearly equal.
  const double ratio = std::max(high / low, 1.1), middle = std::sqrt(low * high);
  const double half = std::pow(ratio, 0.5 + kRoom);
  low_ = middle / half;
  high_ = middle * half;
}

double LogScale::At(double value) const {
  return std::clamp(std::log(value / low_) / std::log(high_ / low_), 0.0, 1.0);
}

std::string LogScale::Percent(double value) const { return PercentOf(At(value)); }

std::vector<double> LogScale::Ticks(int most) const {
  for (const std::vector<double>& factors :
       {std::vector<double>{1, 2, 5}, std::vector<double>{1, 3}, std::vector<double>{1}}) {
    const std::vector<double> ticks = Within(low_, high_, factors, 1);
    if (ticks.size() >= 2 && ticks.size() <= static_cast<size_t>(most)) return ticks;
  }
  for (int step = 2; step < 20; ++step) {
    const std::vector<double> ticks = Within(low_, high_, {1}, step);
    if (ticks.size() >= 2 && ticks.size() <= static_cast<size_t>(most)) return ticks;
  }
  // Less than a factor of two or so: equal steps of a round number.
  double step = std::pow(10.0, std::floor(std::log10(high_ - low_)));
  while ((high_ - low_) / step + 1 > most) step *= step < 0 ? 1 : 2;
  while (std::floor(high_ / step) - std::ceil(low_ / step) < 1) step /= 2;
  std::vector<double> ticks;
  for (double k = std::ceil(low_ / step); k * step <= high_; ++k) ticks.push_back(k * step);
  return ticks;
}

std::string PercentOf(double share) { return absl::StrFormat("%.3f%%", 100 * share); }
std::string Length(double pixels) { return absl::StrFormat("%.1f", pixels); }

std::string CountText(double count) { return InUnits(count, {"", "k", "M", "G", "T"}, 1); }

std::string RoundTimeText(double us) {
  return InUnits(us, {" ns", " us", " ms", " s", " ks"}, 1e-3);
}

}  // namespace coconet
