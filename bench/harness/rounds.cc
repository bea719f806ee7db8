#include "bench/harness/rounds.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include "autotune/measure/statistics.h"

namespace coconet::bench {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 24;

absl::Status Meet(Rank& rank) {
  RETURN_IF_ERROR(rank.exchange().Barrier());
  return rank.exchange().Barrier();
}

/// Maxima over ranks.
struct Sample {
  double us = 0;
  double preemptions = 0;
};

double PreemptionsSoFar() {
  rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? static_cast<double>(usage.ru_nivcsw) : 0;
}

/// A sample of `steps` steps, after an untimed step.
absl::StatusOr<Sample> TakeSample(Rank& rank, const Contender& contender, int64_t steps) {
  RETURN_IF_ERROR(contender.run(1));
  const double before = PreemptionsSoFar();
  RETURN_IF_ERROR(Meet(rank));
  const double start_s = SecondsNow();
  RETURN_IF_ERROR(contender.run(steps));
  Sample sample{.us = 1e6 * (SecondsNow() - start_s), .preemptions = PreemptionsSoFar() - before};
  // A rank that is done leaves a shared core to the other rank, instead of going on
  // to untimed work.
  ASSIGN_OR_RETURN(sample.us, rank.exchange().Max(sample.us));
  ASSIGN_OR_RETURN(sample.preemptions, rank.exchange().Max(sample.preemptions));
  return sample;
}

struct Pace {
  int64_t steps = 1;     // per sample
  double sample_us = 0;  // approximately
};

absl::StatusOr<Pace> FindPace(Rank& rank, const Contender& contender, const RoundTerms& terms) {
  Pace pace{.steps = std::max<int64_t>(terms.steps, 1)};
  for (;; pace.steps *= 2) {
    ASSIGN_OR_RETURN(const Sample sample, TakeSample(rank, contender, pace.steps));
    pace.sample_us = sample.us;
    if (terms.steps > 0 || pace.sample_us >= terms.min_sample_us || pace.steps >= kMaxSteps)
      return pace;
  }
}

}  // namespace

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::StatusOr<std::vector<Finding>> MeasureInRounds(Rank& rank,
                                                     absl::Span<const Contender> contenders,
                                                     const RoundTerms& terms) {
  std::vector<Pace> paces;
  double round_us = 0;
  for (const Contender& contender : contenders) {
    ASSIGN_OR_RETURN(paces.emplace_back(), FindPace(rank, contender, terms));
    round_us += paces.back().sample_us * (1 + 1.0 / static_cast<double>(paces.back().steps));
  }
  const int rounds = std::clamp(static_cast<int>(terms.seconds * 1e6 / std::max(round_us, 1.0)),
                                terms.min_rounds, terms.max_rounds);

  std::mt19937 random(20240229);  // any number, but the same on all ranks
  std::vector<size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), 0);
  struct Samples {
    std::vector<double> times;  // of a step
    int preempted = 0;
  };
  std::vector<Samples> samples(contenders.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    for (const size_t c : order) {
      ASSIGN_OR_RETURN(const Sample sample, TakeSample(rank, contenders[c], paces[c].steps));
      samples[c].times.push_back(sample.us / static_cast<double>(paces[c].steps));
      if (sample.preemptions > 0) ++samples[c].preempted;
    }
  }

  std::vector<Finding> measured;
  for (size_t c = 0; c < contenders.size(); ++c) {
    measured.push_back({.side = contenders[c].name,
                        .name = contenders[c].form,
                        .timing = Summarize(samples[c].times),
                        .steps = paces[c].steps,
                        .preempted = samples[c].preempted});
  }
  return measured;
}

}  // namespace coconet::bench
