#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/measure/race.h"
#include "autotune/measure/verifier.h"
#include "autotune/store/record.h"
#include "autotune/store/tuning_cache.h"
#include "runtime/rank.h"

namespace coconet {

/// Compiles, verifies and times variants for the tuner, which names them by number. Every call but
/// Unload is collective and returns the same answer on all ranks. An error means that the ranks
/// lost contact, or that a GPU runs nothing more after a kernel failed; Cancelled, that the user
/// interrupted. Tests of the tuner fake it.
class VariantRunner {
 public:
  virtual ~VariantRunner() = default;

  /// Returns one entry per variant. Once `stop`, polled on rank 0, returns true, variants that were
  /// not compiled yet fail as kNotMeasured.
  virtual absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& stop) = 0;
  /// Loads the variant and verifies all its results at a small odd size.
  virtual absl::StatusOr<std::optional<Failure>> Load(int variant) = 0;
  /// Verifies the variant at the program's size. Requires Load.
  virtual absl::StatusOr<std::optional<Failure>> Verify(int variant) = 0;
  /// What Load and Verify have verified. Requires Load.
  virtual Trust TrustIn(int variant) const = 0;

  struct Sample {
    double us = 0;  // per step, the maximum over ranks
    std::optional<Failure> failure;
  };
  /// Runs `warm_up` untimed, then `steps` timed steps, which all ranks start together. Requires
  /// Load.
  virtual absl::StatusOr<Sample> Time(int variant, int warm_up, int steps) = 0;
  /// Collective, but does not wait for other ranks.
  virtual void Unload(int variant) = 0;
};

/// A variant before it is tried: words and config are filled in, and the verdict of a variant that
/// cannot run.
struct Entrant {
  VariantResult result;
  int group = 0;              // Variant::group
  std::vector<int> features;  // FeaturesOf (forecast.h)
};

struct TunerOptions {
  double budget_s = 60;
  double start_s = 0;  // start of the budget on the clock `seconds`
  uint64_t seed = 0;   // of the order of measurements; equal on all ranks
  RaceOptions race;
  bool tries_all = false;  // verifies every variant, however slow: times of simulated GPUs mean
                           // nothing
  bool partial = false;    // the entrants are some of the variants only: the record is incomplete
  int incumbent = -1;      // the best of an earlier run, which is tried right after the baseline
  std::string key, key_text;
  // Set on rank 0 only.
  std::function<double()> seconds;  // a monotonic clock
  std::function<bool()> interrupted;
  std::function<void(absl::string_view)> progress;
  TuningJournal* journal = nullptr;
};

struct Tuned {
  TuningRecord record;
  std::vector<VariantResult> variants;  // by number
  int best = -1;                        // the only variant that is still loaded
};

/// Finds the best of the entrants, which are sorted from simple to complex, and stores it.
/// Collective: all ranks decide alike, since they use only data that all ranks have. A variant's
/// failure is a value in `variants`; the search goes on.
///
/// 1. Compiles, verifies and samples the baseline, the incumbent, and the plainest variant of each
///    group, the most promising groups first (Forecast). This takes at most half of the budget.
/// 2. Drops groups that are far behind, and tries the other variants of the rest in the same way.
/// 3. Times the remaining variants in rounds (Race), and verifies the winner once more.
///
/// Every variant is verified at a small size, and at the program's size, too; where that takes more
/// than a hundredth of the budget, only leaders are. When the budget ends or the user interrupts,
/// the best variant so far is stored as incomplete. What is stored was verified at the program's
/// size. Cancelled: interrupted before anything was
/// measured. Internal: no variant gives the right answer.
absl::StatusOr<Tuned> Tune(std::vector<Entrant> entrants, int baseline, VariantRunner& runner,
                           Exchange& exchange, const TunerOptions& options);

}  // namespace coconet
