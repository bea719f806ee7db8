#include "bench/harness/rounds.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
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

struct Sample {
  double us = 0;
  double preemptions = 0;  // of the calling thread
};

double PreemptionsSoFar() {
  rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? static_cast<double>(usage.ru_nivcsw) : 0;
}

/// This rank's sample of `steps` steps, after an untimed step.
absl::StatusOr<Sample> SampleHere(Rank& rank, const Contender& contender, int64_t steps) {
  RETURN_IF_ERROR(contender.run(1));
  const double before = PreemptionsSoFar();
  RETURN_IF_ERROR(Meet(rank));
  const double start_s = SecondsNow();
  RETURN_IF_ERROR(contender.run(steps));
  const double us = 1e6 * (SecondsNow() - start_s);
  const double preemptions = PreemptionsSoFar() - before;
  // A rank that is done leaves a shared core to the other rank, instead of going on
  // to untimed work.
  RETURN_IF_ERROR(rank.exchange().Barrier());
  return Sample{.us = us, .preemptions = preemptions};
}

struct Pace {
  int64_t steps = 1;     // per sample
  double sample_us = 0;  // approximately
};

absl::StatusOr<Pace> FindPace(Rank& rank, const Contender& contender, const RoundTerms& terms) {
  Pace pace{.steps = std::max<int64_t>(terms.steps, 1)};
  for (;; pace.steps *= 2) {
    ASSIGN_OR_RETURN(const Sample here, SampleHere(rank, contender, pace.steps));
    ASSIGN_OR_RETURN(pace.sample_us, rank.exchange().Max(here.us));
    if (terms.steps > 0 || pace.sample_us >= terms.min_sample_us || pace.steps >= kMaxSteps)
      return pace;
  }
}

/// The maximum over ranks of each element.
absl::StatusOr<std::vector<double>> MaxOverRanks(Rank& rank, std::vector<double> mine) {
  const size_t bytes = mine.size() * sizeof(double);
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   rank.exchange().AllGather({reinterpret_cast<const char*>(mine.data()), bytes}));
  for (const std::string& theirs : all) {
    CC_CHECK(theirs.size() == bytes);
    for (size_t i = 0; i < mine.size(); ++i) {
      double value;
      std::memcpy(&value, theirs.data() + i * sizeof value, sizeof value);
      mine[i] = std::max(mine[i], value);
    }
  }
  return mine;
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
  std::vector<double> times(contenders.size() * rounds), preemptions(times.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    for (const size_t c : order) {
      ASSIGN_OR_RETURN(const Sample here, SampleHere(rank, contenders[c], paces[c].steps));
      times[c * rounds + round] = here.us;
      preemptions[c * rounds + round] = here.preemptions;
    }
  }
  ASSIGN_OR_RETURN(times, MaxOverRanks(rank, std::move(times)));
  ASSIGN_OR_RETURN(preemptions, MaxOverRanks(rank, std::move(preemptions)));

  std::vector<Finding> measured;
  for (size_t c = 0; c < contenders.size(); ++c) {
    absl::Span<double> samples(&times[c * rounds], rounds);
    for (double& sample : samples) sample /= static_cast<double>(paces[c].steps);
    const auto first = preemptions.begin() + static_cast<int64_t>(c) * rounds;
    const auto preempted = std::count_if(first, first + rounds, [](double n) { return n > 0; });
    measured.push_back({.side = contenders[c].name,
                        .name = contenders[c].form,
                        .timing = Summarize(samples),
                        .steps = paces[c].steps,
                        .preempted = static_cast<int>(preempted)});
  }
  return measured;
}

}  // namespace coconet::bench
