#include "autotune/report/speedup.h"

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace coconet {

bool IsOnSimulatedGpus(const TuningRecord& record) {
  return absl::StrContains(record.key_text, "\ndevice from rank 0: simulated GPU");
}

Speedup SpeedupOf(const TuningRecord& record) {
  const Timing &best = record.best.timing, &baseline = record.baseline.timing;
  if (best.samples == 0 || baseline.samples == 0 || !(best.low_us > 0) || IsOnSimulatedGpus(record))
    return {};
  if (record.best.trace == record.baseline.trace && record.best.config == record.baseline.config)
    return {1, 1, 1};
  return {baseline.median_us / best.median_us, baseline.low_us / best.high_us,
          baseline.high_us / best.low_us};
}

std::string Text(const Speedup& speedup) {
  if (speedup.median == 0) return "";
  return absl::StrFormat("%.2fx (%.2f to %.2f)", speedup.median, speedup.low, speedup.high);
}

}  // namespace coconet
