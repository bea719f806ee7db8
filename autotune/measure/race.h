#ifndef COCONET_AUTOTUNE_MEASURE_RACE_H_
#define COCONET_AUTOTUNE_MEASURE_RACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "autotune/store/record.h"

namespace coconet {

struct RaceOptions {
  /// A runner is dropped when, after so many samples, even the low end of its confidence interval
  /// (of few samples: the quickest) is so many times the best one's median. Rules for few samples
  /// are for long steps: quick ones cost nothing, and a moment without a core is many times their
  /// length.
  struct Rule {
    int samples;
    double factor;
    double step_us;  // at least this long
  };
  std::vector<Rule> rules = {{1, 3.0, 20000}, {3, 1.5, 5000}, {5, 2.0, 0}, {10, 1.15, 0}};
  int settled = 10;       // samples from which confidence intervals decide, too
  int finalists = 8;      // at most so many run on from there
  int samples = 20;       // that a finalist has at least
  int most_samples = 60;  // sampled up to here while only noise makes a tie
  double tie = 0.02;      // medians this close are the same, whatever the intervals say
  // Noise makes no more than this the same: with few samples under load the intervals would swallow
  // everything.
  double noisy_tie = 0.05, noisy_baseline_tie = 0.2;
};

/// Who is fastest: decisions from samples, nothing else, so that ranks with the same samples decide
/// the same. Runners are numbered in order of simplicity: of those that are as fast as the fastest,
/// the simplest wins. The baseline runs to the end, and is beaten only by what is faster beyond the
/// tie band, and beyond the noise.
class Race {
 public:
  Race(int runners, int baseline, uint64_t seed, RaceOptions options = {});

  void Enter(int runner);           // from now on it takes part
  void Leave(int runner);           // it failed
  void Add(int runner, double us);  // one sample
  bool running(int runner) const { return running_[runner]; }
  Timing timing(int runner) const;

  /// Everyone who runs, in the order of the next round: a seeded permutation, so that drift hits
  /// all alike.
  std::vector<int> NextRound();

  struct Dropped {
    int runner;
    std::string reason;  // "3.2x the best's time"
  };
  /// Who leaves after a round.
  std::vector<Dropped> Drop();
  /// All but the `most` whose quickest sample (of many: the interval's low end) is the quickest,
  /// and the baseline: there is no time for all.
  std::vector<Dropped> KeepQuickest(int most);

  /// Nothing that could change the outcome is left to measure.
  bool Finished() const;

  /// The fastest by median, -1 when nobody who runs has a sample.
  int Fastest() const;
  /// Who is dispatched, -1 as above.
  int Winner() const;
  /// The fastest of the others, -1 when there is none.
  int RunnerUp(int winner) const;

 private:
  /// Why the runner leaves; "" when it stays.
  std::string ReasonToDrop(int runner, const Timing& best) const;

  const int baseline_;
  const RaceOptions options_;
  uint64_t random_;
  std::vector<bool> running_;
  std::vector<std::vector<double>> samples_;
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_MEASURE_RACE_H_
