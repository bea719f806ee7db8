#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autotune/session/online/excess_account.h"
#include "autotune/store/record.h"

namespace coconet {

struct ExplorerOptions {
  /// The most that explored calls take longer than the incumbent's calls, as a share of the time of
  /// any `window` calls. A call that lets the ranks agree counts, too.
  double most_excess = 0.05;
  int window = 100;
  /// A variant replaces the incumbent if it is faster by more than this, with all of its interval.
  double tie = 0.01;
  int least_trials = 12, most_trials = 60;  // of a variant, before it is decided on
  /// Variants that are expected to take this many times as long as the incumbent are never run.
  double most_ratio = 2;
  uint64_t seed = 0;  // of the order of trials
};

/// Decides which variant each call of a job runs, so that it finds the fastest at a bounded cost.
/// It knows no ranks and no clock: what it decides follows from its arguments and from the readings
/// that it is given, so that ranks with the same readings switch at the same call. Variants are
/// numbered; number 0 is the incumbent at first.
///
/// A variant is explored in trials: up to three calls in a row between calls of the incumbent,
/// after which the ranks agree on what they took. A trial begins only where the most that it may
/// take fits in every window, beside what earlier trials were measured to take:
///
///   | call                 | may take at most                                               |
///   | -------------------- | -------------------------------------------------------------- |
///   | a variant's first    | all that a window admits, or it is not tried at all where this |
///   |                      | is less than twice what the preparation expects                |
///   | a variant's others   | 1.75 times what its calls took so far, in the median           |
///   | an incumbent's after | 1.5 times its others                                           |
///   | an agreement         | 1.5 times what agreements took so far, in the median           |
///
/// As long as no call takes more, the bound holds for any window. A call that takes more defers all
/// trials until the window has room again, so that one trial at most is beyond the bound at a time.
/// A variant that does so several times, and clearly more often than the incumbent, is dropped.
class Explorer {
 public:
  /// `expected_us`: by variant, microseconds of a step as far as is known. `agreement_us`: how long
  /// an agreement takes.
  Explorer(std::vector<double> expected_us, double agreement_us, const ExplorerOptions& options);

  struct Call {
    int variant = 0;
    bool timed = false;   // its time is a reading
    bool agrees = false;  // after it the ranks agree on all readings since the last agreement
  };
  /// The call that comes next. After one that agrees, Agree must be called.
  Call Next() {
    ++call_;
    if (at_ == plan_.size() || plan_[at_].call != call_) return {incumbent_, false, false};
    return Planned();
  }
  /// The readings that the ranks have agreed on, in the order of the calls, and how long the
  /// agreement before this one took, in microseconds.
  void Agree(absl::Span<const double> us, double agreement_us);

  int incumbent() const { return incumbent_; }
  /// Whether nothing is left to explore: every later call runs the incumbent.
  bool finished() const { return plan_.empty(); }
  int64_t calls() const { return call_; }
  int64_t explored() const { return explored_; }  // calls of other variants
  int switches() const { return switches_; }
  /// How long an agreement takes, as far as is known.
  double agreement_us() const;

  enum class State : uint8_t {
    kOpen,       // not decided on
    kIncumbent,  // the variant that calls run
    kSlower,     // not faster than the incumbent by more than a tie
    kTooSlow,    // takes so long, at least at times, that it is not compared
  };
  State state(int variant) const { return variants_[variant].state; }
  /// A variant's step in the job, by the incumbent's time and their ratio; no samples if it was not
  /// compared.
  Timing timing(int variant) const;
  /// Why nothing was explored at all; "" otherwise.
  const std::string& refusal() const { return refusal_; }

 private:
  enum class Part : uint8_t { kBefore, kFirst, kSample, kBack, kAfter };
  struct Event {
    int64_t call = 0;
    int variant = 0;
    Part part{};
    double most = 0;  // excess, in steps of the incumbent
  };
  /// How often calls took more than was reserved for them.
  struct Overruns {
    int calls = 0, overruns = 0;
  };
  struct Variant {
    State state = State::kOpen;
    double expected = 1;         // ratio to the incumbent
    int probes = 0;              // single calls
    std::vector<double> calls;   // ratios of its latest calls
    std::vector<double> ratios;  // by trial
    Overruns overruns;
  };

  Call Planned();
  bool AgreesTooSlowly() const;
  double MostOfAgreement() const;
  /// The ratio that a variant's calls take, as far as is known.
  double TypicalOf(const Variant& variant) const;
  bool IsProbed(const Variant& variant) const;
  /// Plans the next trial; none if nothing is left.
  void Plan();
  /// The variant of the next trial; -1 if all are decided on.
  int NextInTurn();
  /// Plans a trial of the variant; false if no window admits one.
  bool AddTrial(int variant);
  /// The most excess of the variant's calls in its next trial; none if no window admits one.
  std::vector<double> MostOf(const Variant& variant) const;
  void Learn(absl::Span<const double> us);
  void Decide();
  bool IsDropped(const Variant& variant) const;
  void SwitchTo(int variant);

  const ExplorerOptions options_;
  std::mt19937_64 random_;  // alike on all ranks
  std::vector<Variant> variants_;
  std::vector<double> incumbent_times_us_;  // the latest readings
  std::string refusal_;
  int incumbent_ = 0;
  double incumbent_us_ = 0;
  Overruns incumbent_overruns_;        // of the calls beside trials
  std::vector<double> agreements_us_;  // the latest
  int64_t agreed_call_ = 0;            // of the latest agreement; 0: there was none
  int64_t call_ = 0, explored_ = 0;
  int switches_ = 0;
  std::vector<int> turns_;   // variants, of which the last one is tried next
  std::vector<Event> plan_;  // the trial
  size_t at_ = 0;            // the next event
  ExcessAccount account_;
};

}  // namespace coconet
