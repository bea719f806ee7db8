#ifndef COCONET_AUTOTUNE_SEARCH_TUNER_H_
#define COCONET_AUTOTUNE_SEARCH_TUNER_H_

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

/// Makes variants run: what the tuner needs done, by number. Every call but Unload is collective
/// and gives all ranks the same answer; an error means that the ranks lost each other, or that
/// nothing can go on, as after a kernel failed on a GPU. Faked in the tuner's tests.
class VariantRunner {
 public:
  virtual ~VariantRunner() = default;

  /// One entry a variant asked for. Those not reached when `stop` says so (polled on rank 0) are
  /// failures kNotMeasured.
  virtual absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& stop) = 0;
  /// Loads the variant, and verifies it in full at a small odd size.
  virtual absl::StatusOr<std::optional<Failure>> Load(int variant) = 0;
  /// Verifies it at its real size. Requires Load.
  virtual absl::StatusOr<std::optional<Failure>> Verify(int variant) = 0;

  struct Sample {
    double us = 0;  // a step, the maximum over ranks
    std::optional<Failure> failure;
  };
  /// `warm_up` untimed and `steps` timed steps back to back, started by all ranks together.
  /// Requires Load.
  virtual absl::StatusOr<Sample> Time(int variant, int warm_up, int steps) = 0;
  /// Collective, but does not wait.
  virtual void Unload(int variant) = 0;
};

/// One variant, before it is tried: words and config are there, and the verdict of those that need
/// not be.
struct Entrant {
  VariantResult result;
  int group = 0;  // see Variant
};

struct TunerOptions {
  double budget_s = 60;
  double start_s = 0;  // when the budget began to run, by `seconds`
  uint64_t seed = 0;   // of the order of measuring; equal on all ranks
  RaceOptions race;
  bool tries_all = false;  // whatever the times say, and verifies them: of simulated GPUs, where
                           // times say nothing
  std::string key, key_text;
  // Rank 0's: others may leave them empty.
  std::function<double()> seconds;  // a clock that never goes back
  std::function<bool()> interrupted;
  std::function<void(absl::string_view)> progress;
  TuningJournal* journal = nullptr;  // null on other ranks
};

struct Tuned {
  TuningRecord record;
  std::vector<VariantResult> variants;  // by number
  int best = -1;
};

/// Finds the best of the entrants, which are in order of simplicity, and stores it. Collective: all
/// ranks take the same decisions, since they only use what Exchange and runner gave to all. What
/// fails is a value in `variants`, and the search goes on.
///
/// Rough first, fine later: the plainest of each group is compiled, verified and sampled; groups
/// far behind are not looked at further, the others bring all their variants; then they race. What
/// is tried first is what the times of those before it promise (Forecast), so a budget too small
/// for all is spent on what matters, half of it at most on looking at groups. The winner is
/// verified again. All are verified at a small size, and at the real one, too: where that takes
/// more than a hundredth of the budget, only those that lead. Within the budget: what was measured
/// is used, and stored as incomplete, when time is up or the user interrupts. Cancelled:
/// interrupted before anything was measured. Internal: no variant gives the right answer.
absl::StatusOr<Tuned> Tune(std::vector<Entrant> entrants, int baseline, VariantRunner& runner,
                           Exchange& exchange, const TunerOptions& options);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SEARCH_TUNER_H_
