#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autotune/store/record.h"

namespace coconet {

/// The median; 0 for no samples.
double Median(std::vector<double> samples);

/// Median with its order-statistic confidence interval of at least 95 %, which assumes no
/// distribution (Hoefler & Belli, SC'15). With fewer than 6 samples the interval is their range,
/// which covers less than 95 %.
Timing Summarize(absl::Span<const double> samples_us);

/// Half the width of the confidence interval over the median: 0.02 means +-2 %. 0 without samples.
double Noise(const Timing& timing);

/// "431 ns", "12.9 us", "13.1 ms": three digits.
std::string TimeText(double us);

}  // namespace coconet
