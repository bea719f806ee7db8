#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autotune/store/record.h"

namespace coconet {

struct RaceOptions {
  /// Drops a runner that has `samples` samples when the low end of its confidence interval (the
  /// minimum of few samples) is above `factor` times the best median. Rules for few samples apply
  /// to long steps only: a short step costs little to repeat, and one preemption is many times its
  /// length.
  struct Rule {
    int samples;
    double factor;
    double step_us;  // applies to steps of at least this length
  };
  std::vector<Rule> rules = {{1, 3.0, 20000}, {3, 1.5, 5000}, {5, 2.0, 0}, {10, 1.15, 0}};
  int settled = 10;       // number of samples from which confidence intervals decide, too
  int finalists = 8;      // most runners that go on from there
  int samples = 20;       // least number of samples of a finalist
  int most_samples = 60;  // most samples of a finalist that ties only by noise
  double tie = 0.02;      // medians this close tie, whatever the intervals say
  // Upper limits of what counts as a tie by noise: under load, intervals of few samples cover all.
  double noisy_tie = 0.05, noisy_baseline_tie = 0.2;
};

/// Finds the fastest runner. Decides by samples only, so that ranks with the same samples decide
/// alike. Runners are numbered from simple to complex: of those that tie with the fastest, the
/// simplest wins. The baseline is never dropped; a runner beats it only by more than a tie.
class Race {
 public:
  Race(int runners, int baseline, uint64_t seed, RaceOptions options = {});

  void Enter(int runner);           // it takes part from now on
  void Leave(int runner);           // it failed
  void Add(int runner, double us);  // one sample
  bool running(int runner) const { return running_[runner]; }
  Timing timing(int runner) const;

  /// The running runners in the order of the next round: a seeded permutation, so that drift
  /// affects all alike.
  std::vector<int> NextRound();

  struct Dropped {
    int runner;
    std::string reason;  // "3.2x as long as the best"
  };
  /// Drops runners by the rules, after a round.
  std::vector<Dropped> Drop();
  /// Drops all runners but the baseline and the `most` with the smallest minimum (of many samples:
  /// the smallest low end of the confidence interval).
  std::vector<Dropped> KeepQuickest(int most);

  /// Whether further samples cannot change the winner.
  bool Finished() const;

  /// The running runner with the smallest median; -1 when none has a sample.
  int Fastest() const;
  /// The runner to dispatch; -1 when none has a sample.
  int Winner() const;
  /// The fastest runner besides the winner; -1 when there is none.
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
