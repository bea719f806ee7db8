#pragma once

#include <string>

#include "autotune/store/record.h"

namespace coconet {

/// How many times as fast the best variant is as the baseline, with an interval.
struct Speedup {
  double median = 0;         // 0: unknown, since one was not timed
  double low = 0, high = 0;  // from the ends of the confidence intervals of both
};

/// The interval holds what the ends of both 95 % confidence intervals admit, so it is wider than a
/// 95 % interval of the ratio. Unknown on simulated GPUs, whose times say nothing of real ones.
Speedup SpeedupOf(const TuningRecord& record);
/// "2.13x (2.08 to 2.19)"; "" if it is unknown.
std::string Text(const Speedup& speedup);

/// Whether the ranks were simulated GPUs.
bool IsOnSimulatedGpus(const TuningRecord& record);

}  // namespace coconet
