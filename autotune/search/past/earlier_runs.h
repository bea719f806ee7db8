#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "autotune/search/strategy.h"
#include "autotune/search/trials.h"
#include "autotune/store/record.h"
#include "autotune/store/tuning_cache.h"
#include "runtime/rank.h"

namespace coconet {

/// Why a variant lost that takes `factor` times as long as the best: "slower by 12.0 %", "1.9x as
/// long as the best".
std::string Slowness(double factor);

/// Times of earlier runs under the key of a tuning. The same on all ranks.
class EarlierRuns {
 public:
  struct Time {
    Timing timing;
    double load = 0;
  };

  /// Collective. Rules out variants that failed under this key before, and takes the times of the
  /// others. `journal` is that of rank 0, and may be null.
  absl::Status Learn(TuningJournal* journal, const std::string& key, Trials& trials,
                     Exchange& exchange);
  /// The fastest variants of earlier runs, which are timed again: times may have changed places.
  std::vector<int> Leaders() const;
  /// Converts times to the machine's speed of today by the factor that variants which were timed in
  /// both agree on, and tells the strategy. With `rules_out`, those that were clearly slower than
  /// the best, on a machine that was not busy, are not tried again. Where the variants disagree,
  /// times only tell the strategy what to try first, and it returns false.
  bool Convert(Trials& trials, Strategy& strategy, int baseline, bool rules_out);
  /// The converted time of a variant, if there is one.
  std::optional<Time> Of(int v) const;

 private:
  std::map<int, Time> times_;
};

}  // namespace coconet
