#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autotune/store/record.h"

namespace coconet {

struct RaceOptions {
  int settled = 10;        // number of samples from which at most `finalists` go on
  int finalists = 8;       // most runners that go on from there
  int samples = 20;        // least number of samples of a finalist
  int most_samples = 120;  // most samples of a finalist about which noise leaves doubts
  double tie = 0.02;       // runners this close tie, whatever the intervals say
  // The upper limit of a tie by noise: under load, intervals of few samples cover everything.
  double noisy_tie = 0.03;
  /// Runs of one pair in different processes differ by about this much, though their samples do
  /// not: by where memory lies. A speed-up's interval is wider by it.
  double between_runs = 0.02;
  /// The share of a sample's time without a processor core up to which the sample is clean. If a
  /// runner has `enough_clean` clean samples, the others do not count.
  double most_lost = 0.05;
  int enough_clean = 5;
};

/// Finds the fastest runner. Compares runners by rounds in which both ran, one soon after the
/// other, so that load on the machine that comes and goes affects both alike. Decides by samples
/// only, so that ranks with the same samples decide alike. Runners are numbered from simple to
/// complex: of those that tie with the fastest, the simplest wins. The baseline is never dropped; a
/// runner beats it only by more than a tie.
class Race {
 public:
  Race(int runners, int baseline, uint64_t seed, RaceOptions options = {});

  void Enter(int runner);  // it takes part from now on
  void Leave(int runner);  // it failed, or was dropped
  bool running(int runner) const { return running_[runner]; }

  /// Starts another round for the samples that are added from now on.
  void BeginRound() { ++round_; }
  /// Begins a round, and returns the running runners in its order: a seeded permutation, so that
  /// drift affects all alike.
  std::vector<int> NextRound();
  /// One sample.
  struct Reading {
    double us = 0;
    double lost = 0;      // the greatest share of its time that a rank had no processor core
    double lost_all = 0;  // the sum of these shares: ranks wait for each other
    bool quiet = true;    // no other program ran shortly before
  };
  void Add(int runner, const Reading& reading);
  /// How long ranks take to meet from now on (VariantRunner::MeetingUs); 0: not known.
  void SetMeeting(double us) { meeting_us_ = us; }
  /// From now on runners have other memory (VariantRunner::MoveMemory).
  void ChangeMemory() { ++memory_; }
  /// Another program ran shortly after the latest sample, which is not quiet then.
  void Disturb();
  /// Whether a quiet sample with this share of lost time is clean.
  bool IsClean(double lost) const { return lost <= options_.most_lost; }
  /// Number of rounds in which the samples of both are clean.
  int CleanRounds(int runner, int other) const;

  /// The median is adjusted for slow rounds; the width of the interval is that of the samples.
  Timing timing(int runner) const;

  /// The logarithm of a runner's time over another's.
  struct Ratio {
    double log = 0, low = 0, high = 0;  // with an interval of 95 %, or wider
    int rounds = 0;                     // in which both ran
  };
  Ratio Compare(int runner, int other) const;
  /// How many times as fast as the baseline the runner is. Where the rounds were in several
  /// memories, the interval is that of their medians. If ranks met much faster in some rounds than
  /// in others, it covers those of both.
  SpeedUp SpeedUpOf(int runner) const;
  /// The number of memories in which SpeedUpOf has enough rounds.
  int Memories(int runner) const;

  struct Dropped {
    int runner;
    std::string reason;  // "not among the 8 fastest"; "": it is slower than the best
  };
  /// The running runners to drop after a round, since in all likelihood they are slower than the
  /// fastest. The caller lets them Leave.
  std::vector<Dropped> ToDrop() const;
  /// Whether this runner is in all likelihood slower than the fastest.
  bool IsSlower(int runner) const;
  /// All running runners but the baseline and the `most` that may be the fastest.
  std::vector<Dropped> AllBut(int most) const;

  /// Whether further samples are unlikely to change the winner.
  bool Finished() const;

  /// The running runner with the smallest median; -1 when none has a sample.
  int Fastest() const;
  /// The runner to dispatch; -1 when none has a sample.
  int Winner() const;
  /// The fastest runner besides the winner; -1 when there is none.
  int RunnerUp(int winner) const;

 private:
  struct Sample {
    int round = 0;
    double log_us = 0, lost = 0, lost_all = 0;
    bool quiet = true;
    double meeting_us = 0;
    int memory = 0;
  };
  bool IsClean(const Sample& sample) const { return sample.quiet && IsClean(sample.lost); }
  /// Effects of a two-way model: the logarithm of a sample is the runner's level, plus the round's
  /// slowness, plus noise. Fitted by medians, alternately (Tukey's median polish).
  struct Fit {
    std::vector<double> level;     // by runner
    std::vector<double> slowness;  // by round
    double noise = 0;              // standard deviation of a difference in one round
  };
  const Fit& Fitted() const;
  double NoiseOf(const Fit& fit) const;
  /// The samples that count.
  std::vector<Sample> Usable(int runner) const;
  /// Logarithms of ratios, by round in which both ran; of clean samples only if these are enough.
  struct Differences {
    std::vector<double> log, low, high;  // with the bounds that follow from what a sample lost
    std::vector<double> meeting_us;
    std::vector<int> memory;
    bool clean = false;
  };
  Differences DifferencesOf(int runner, int other) const;
  /// The median of each memory with enough rounds.
  static std::vector<double> MediansByMemory(const Differences& differences);
  Ratio RatioOf(const Differences& differences) const;
  /// RatioOf, with an interval by the medians of the rounds in each memory.
  Ratio RatioOverMemories(const Differences& differences) const;
  bool MayBeFaster(int runner, int best) const;

  const int baseline_;
  const RaceOptions options_;
  uint64_t random_;
  int round_ = 0;
  std::vector<bool> running_;
  std::vector<std::vector<Sample>> samples_;
  double meeting_us_ = 0;
  int memory_ = 0;
  int latest_ = -1;  // the runner of the latest sample
  mutable Fit fit_;
  mutable bool fitted_ = false;
};

}  // namespace coconet
