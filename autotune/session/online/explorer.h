#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
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
  int most_trials_together = 32;            // between two agreements of the ranks
  /// Variants that are expected to take this many times as long as the incumbent are never run.
  double most_ratio = 2;
  uint64_t seed = 0;  // of the order of trials
};

/// Decides which variant each call of a job runs, so that it finds the fastest at a bounded cost.
/// It knows no ranks and no clock: what it decides follows from its arguments and from the readings
/// that it is given, so that ranks with the same readings switch at the same call. Variants are
/// numbered; number 0 is the incumbent at first.
///
/// A variant is first run in single calls, each alone in its window, so that the bound holds even
/// where a step takes four times as long as the incumbent's. Then it is compared by trials: three
/// calls of the variant between calls of the incumbent, as many as the bound admits by what its
/// calls have taken so far. What takes the time of an agreement counts as if it were explored.
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
  /// The readings that the ranks have agreed on, in the order of the calls, in microseconds.
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
    kTooSlow,    // takes so long that it is not compared
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
    int trial = 0;  // its number in the plan
    Part part{};
  };
  struct Variant {
    State state = State::kOpen;
    double expected = 1;         // ratio to the incumbent
    int probes = 0;              // single calls
    std::vector<double> calls;   // ratios of its latest calls
    std::vector<double> ratios;  // by trial
  };
  /// Excess at a call, in steps of the incumbent.
  struct Spent {
    int64_t call = 0;
    double excess = 0;
  };

  Call Planned();
  bool AgreesTooSlowly() const;
  double allowance() const { return options_.most_excess * options_.window; }
  /// The ratio that a variant's next call takes at most, in all likelihood.
  double MostOf(const Variant& variant) const;
  bool IsProbed(const Variant& variant) const;
  /// Plans calls until the next agreement; none if nothing is left.
  void Plan();
  /// The first call from `from` on at which calls that may take so much more keep the bound.
  int64_t Place(int64_t from, absl::Span<const double> excess) const;
  /// Plans a trial of `samples` calls after a first one, from that call on; returns the call behind
  /// it. kNever if the bound does not admit it.
  int64_t AddTrial(int variant, int samples, double probe_excess, int64_t from);
  static constexpr int64_t kNever = -1;
  void Learn(absl::Span<const double> us);
  void Decide();
  void SwitchTo(int variant);

  const ExplorerOptions options_;
  uint64_t random_;
  std::vector<Variant> variants_;
  std::vector<double> incumbent_times_us_;  // the latest readings
  std::string refusal_;
  int incumbent_ = 0;
  double incumbent_us_ = 0;
  std::vector<double> agreements_us_;  // the latest
  int64_t call_ = 0, explored_ = 0;
  int switches_ = 0, trials_ = 4, trials_planned_ = 0;
  std::vector<Event> plan_;
  size_t at_ = 0;             // the next event
  std::vector<Spent> spent_;  // by call, ascending; what is planned included
};

}  // namespace coconet
