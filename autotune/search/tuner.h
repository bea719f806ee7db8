#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/measure/race.h"
#include "autotune/search/strategy.h"
#include "autotune/search/variant_runner.h"
#include "autotune/store/record.h"
#include "autotune/store/tuning_cache.h"
#include "runtime/rank.h"

namespace coconet {

struct TunerOptions {
  double budget_s = 60;
  double start_s = 0;  // start of the budget on the clock `seconds`
  /// The steps of a job: the search ends where it has taken longer than it may save in so many.
  /// 0, or a search that leaves nothing out (kExhaustive, kRacing): it goes on.
  double job_steps = 0;
  uint64_t seed = 0;  // of the order of measurements; equal on all ranks
  SearchKind search = SearchKind::kAuto;
  RaceOptions race;
  int pairs = 3;      // of samples, of a new variant and of the best, when it is first tried
  bool drops = true;  // variants that are slower
  /// Times that are stored are to hold: waits for samples that no other program disturbed, and
  /// times the winner and the baseline until their ratio is known well.
  bool settles = true;
  /// If other programs use a larger share of the cores, times mislead: only the third run under
  /// such load is complete.
  double most_load = 0.75;
  bool tries_all = false;  // verifies every variant, however slow: times of simulated GPUs mean
                           // nothing
  bool partial = false;    // the entrants are some of the variants only: the record is incomplete
  int left_out = 0;        // variants that are no entrants (KeptVariants)
  int incumbent = -1;      // the best of an earlier run, which is tried right after the baseline
  std::vector<int> favourites;  // others that are tried next
  SearchState earlier;          // of earlier runs
  bool anew = false;            // forgets what earlier runs tried; their times serve as forecasts
  std::string key, key_text, soft;  // of the record
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
/// Collective: all ranks decide alike. A variant's failure is a value in `variants`; the search
/// continues.
///
/// 1. Compiles, verifies and samples the baseline, and the incumbent in turns with it.
/// 2. Tries other variants, each in turns with the best so far, in the order of `search`
///    (Strategy), half of them drawn at random, until enough were tried (Coverage) or the budget is
///    spent in large part. Drops those that are slower.
/// 3. Times the rest in rounds (Race), and verifies the winner once more.
///
/// 4. Times the winner in turns with the baseline, in several memories, until their ratio is known
///    well, and compares it with what earlier runs have measured.
///
/// Continues earlier runs under the same key: their fastest variants are timed again. Where the
/// variants that were timed in both agree on how times have changed since, times of earlier runs
/// are converted by that factor, and variants that were much slower than the best, on a machine
/// that was not busy, are not tried again.
///
/// Every variant is verified at small sizes, and at the program's size, too; if that takes more
/// than a hundredth of the budget, only leaders are. The best variant so far is stored as
/// incomplete every few seconds, and when the budget ends or the user interrupts. Stored variants
/// were verified at the program's size. Cancelled: interrupted before anything was measured.
/// Internal: no variant gives the right answer.
absl::StatusOr<Tuned> Tune(std::vector<Entrant> entrants, int baseline, VariantRunner& runner,
                           Exchange& exchange, const TunerOptions& options);

}  // namespace coconet
