#ifndef COCONET_BENCH_ROUNDS_H_
#define COCONET_BENCH_ROUNDS_H_

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

/// Something to time, on every rank.
struct Contender {
  std::string name;
  std::function<absl::Status(int64_t steps)> run;  // this rank's part of so many steps
};

struct RoundTerms {
  double seconds = 2;  // of all rounds together, about
  int min_rounds = 7, max_rounds = 101;
  double min_sample_us = 1000;  // a sample is as many steps as last that long
  int64_t steps = 0;            // or this many, when not 0
};

struct Measured {
  std::string name;
  Timing timing;      // of one step
  int64_t steps = 0;  // per sample
  int preempted = 0;  // samples in which something else took a rank's core away
};

/// Collective. Times contenders in interleaved rounds: each round runs all of them once, in an
/// order of its own that is the same on all ranks, so that a drift of the machine hits all alike. A
/// sample follows an untimed step of the same contender, which brings back its data and its
/// branches, and two barriers: a rank may sleep in the first and wake late; the second is too short
/// for that. A sample's time is the maximum over ranks.
///
/// Google Benchmark times one process, one contender after the other, and so has no use here.
absl::StatusOr<std::vector<Measured>> MeasureInRounds(Rank& rank,
                                                      absl::Span<const Contender> contenders,
                                                      const RoundTerms& terms);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_ROUNDS_H_
