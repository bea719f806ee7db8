#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/harness/finding.h"
#include "coconet/base/status.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// Seconds on a monotonic clock.
double SecondsNow();

/// A computation to time, on every rank.
struct Contender {
  std::string name;
  std::function<absl::Status(int64_t steps)> run;  // runs this rank's part of `steps` steps
  std::string form = {};                           // which of several of the same name it is
};
/// Calls it.Run(steps). `it` outlives the contender.
template <class T>
Contender ContenderOf(std::string name, T& it, std::string form = {}) {
  return {std::move(name), [&it](int64_t steps) { return it.Run(steps); }, std::move(form)};
}
/// Calls `once`, which returns a status, for each step.
template <class Once>
Contender EachStep(std::string name, Once once, std::string form = {}) {
  return {std::move(name),
          [once](int64_t steps) -> absl::Status {
            for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(once());
            return absl::OkStatus();
          },
          std::move(form)};
}

struct RoundTerms {
  double seconds = 2;  // of all rounds together, approximately
  int min_rounds = 7, max_rounds = 101;
  double min_sample_us = 1000;  // a sample has as many steps as fill this time
  int64_t steps = 0;            // steps per sample; 0: by min_sample_us
};

/// Collective. Times contenders in interleaved rounds: each round runs all of them once, in a
/// random order that is the same on all ranks, so that a drift of the machine affects all alike.
/// A sample follows an untimed step of the same contender, which warms caches and branch
/// prediction, and two barriers: ranks may sleep in the first, not in the second. Its time is the
/// maximum over ranks. A contender is the side of its finding, and the form its name.
absl::StatusOr<std::vector<Finding>> MeasureInRounds(Rank& rank,
                                                     absl::Span<const Contender> contenders,
                                                     const RoundTerms& terms);

}  // namespace coconet::bench
