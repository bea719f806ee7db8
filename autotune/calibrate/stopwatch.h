#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/measure/arena.h"
#include "runtime/plan.h"
#include "runtime/rank.h"

namespace coconet {

/// A plan to be timed, with what it runs.
struct TimedPlan {
  const Plan* plan = nullptr;  // outlives the stopwatch
  std::shared_ptr<Module> module;
  /// Inputs of i32 are numbers below `rows`: rows of a table.
  int64_t rows = 64;
};

/// Times plans on all ranks, with data in the caches as a run of the same plan leaves them.
class Stopwatch {
 public:
  struct Terms {
    int samples = 12;
    double sample_us = 200;  // of a sample, which is as many runs as last so long
  };

  /// Collective. Allocates memory that all plans share.
  static absl::StatusOr<Stopwatch> Create(Rank& rank, std::vector<TimedPlan> plans);

  /// Collective: binds a plan, fills its inputs and states with numbers in [0.5, 1), for which no
  /// operation is slow, and runs it in samples that all ranks begin together. Returns the time of a
  /// run in microseconds, on the slowest rank: the median of the half of the samples in which ranks
  /// lost least time to other programs.
  absl::StatusOr<double> Time(size_t plan, const Terms& terms);

  /// Collective: the time of each step of a plan of collectives, from when the last rank began it:
  /// the median of `samples` runs, in microseconds.
  absl::StatusOr<std::vector<double>> TimeSteps(size_t plan, int samples);

 private:
  Stopwatch(Rank& rank, std::vector<TimedPlan> plans, Arena arena)
      : rank_(&rank), plans_(std::move(plans)), arena_(std::move(arena)) {}

  /// Collective: binds the plan to memory, which `memory` keeps, and fills it.
  absl::StatusOr<std::unique_ptr<BoundPlan>> Bind(const TimedPlan& timed,
                                                  std::vector<std::shared_ptr<Memory>>& memory);
  absl::Status Fill(const TimedPlan& timed, absl::Span<Memory* const> buffers) const;

  Rank* rank_;
  std::vector<TimedPlan> plans_;
  Arena arena_;
};

}  // namespace coconet
