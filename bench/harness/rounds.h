#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/store/record.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// Seconds on a monotonic clock.
double SecondsNow();

/// A computation to time, on every rank.
struct Contender {
  std::string name;
  std::function<absl::Status(int64_t steps)> run;  // runs this rank's part of `steps` steps
};

struct RoundTerms {
  double seconds = 2;  // of all rounds together, approximately
  int min_rounds = 7, max_rounds = 101;
  double min_sample_us = 1000;  // a sample has as many steps as fill this time
  int64_t steps = 0;            // steps per sample; 0: by min_sample_us
};

struct Measured {
  std::string name;
  Timing timing;      // of one step
  int64_t steps = 0;  // per sample
  int preempted = 0;  // samples in which a rank was preempted
};

/// Collective. Times contenders in interleaved rounds: each round runs all of them once, in a
/// random order that is the same on all ranks, so that a drift of the machine affects all alike.
/// A sample follows an untimed step of the same contender, which warms caches and branch
/// prediction, and two barriers: ranks may sleep in the first, not in the second. Its time is the
/// maximum over ranks.
absl::StatusOr<std::vector<Measured>> MeasureInRounds(Rank& rank,
                                                      absl::Span<const Contender> contenders,
                                                      const RoundTerms& terms);

}  // namespace coconet::bench
