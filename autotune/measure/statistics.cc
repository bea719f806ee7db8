#include "autotune/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"

namespace coconet {
namespace {

/// The number of samples to leave out at each end: the largest k with P(Binomial(n, 1/2) < k)
/// <= 2.5 %.
int TrimmedEachSide(int n) {
  constexpr int kExact = 1000;  // 2^-n stays a normal double
  if (n > kExact) return static_cast<int>(std::floor(n / 2.0 - 0.98 * std::sqrt(n)));
  double probability = std::ldexp(1.0, -n);  // of exactly k successes
  double below = 0;
  for (int k = 0;; ++k) {
    below += probability;
    if (below > 0.025) return k;
    probability *= static_cast<double>(n - k) / (k + 1);
  }
}

double MiddleOf(absl::Span<const double> sorted) {
  const size_t n = sorted.size();
  if (n == 0) return 0;
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

}  // namespace

double Median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return MiddleOf(samples);
}

Timing Summarize(absl::Span<const double> samples_us) {
  if (samples_us.empty()) return {};
  std::vector<double> sorted(samples_us.begin(), samples_us.end());
  std::sort(sorted.begin(), sorted.end());
  const int n = static_cast<int>(sorted.size());
  const int k = TrimmedEachSide(n);
  // With k samples trimmed, the interval is from the k-th smallest to the k-th largest (counted
  // from 1).
  const int low = std::max(k - 1, 0);
  return {.median_us = MiddleOf(sorted),
          .low_us = sorted[low],
          .high_us = sorted[n - 1 - low],
          .samples = n};
}

double Noise(const Timing& timing) {
  return timing.median_us > 0 ? (timing.high_us - timing.low_us) / 2 / timing.median_us : 0;
}

std::string TimeText(double us) {
  const std::pair<double, const char*> scaled = us < 1     ? std::pair(us * 1e3, "ns")
                                                : us < 1e3 ? std::pair(us, "us")
                                                : us < 1e6 ? std::pair(us / 1e3, "ms")
                                                           : std::pair(us / 1e6, "s");
  const int decimals = scaled.first < 9.995 ? 2 : scaled.first < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, scaled.first, scaled.second);
}

}  // namespace coconet
