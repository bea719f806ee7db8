#ifndef COCONET_AUTOTUNE_MEASURE_STATISTICS_H_
#define COCONET_AUTOTUNE_MEASURE_STATISTICS_H_

#include <vector>

#include "absl/types/span.h"
#include "autotune/store/record.h"

namespace coconet {

/// Robust centre: half of the samples are at most this. 0 for no samples.
double Median(std::vector<double> samples);

/// Median with the order-statistic confidence interval of at least 95 %: no distribution is assumed
/// (Hoefler & Belli, SC'15). Below 6 samples no pair of them reaches 95 %, and the interval is all
/// of them.
Timing Summarize(absl::Span<const double> samples_us);

/// Half the confidence interval over the median: 0.02 reads "plus or minus 2 %". 0 without samples.
double Noise(const Timing& timing);

/// True when the difference of two medians is within what was measured: `tie` of the smaller one,
/// or the joint half width of both confidence intervals, whichever is more.
bool Tied(const Timing& a, const Timing& b, double tie);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_MEASURE_STATISTICS_H_
