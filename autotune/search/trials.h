#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/measure/race.h"
#include "autotune/search/time_budget.h"
#include "autotune/search/tuner.h"
#include "autotune/search/variant_runner.h"

namespace coconet {

/// Tries variants: compiles, verifies and times them, and drops those that fail or are slower than
/// the best. Collective: all ranks decide alike. Results are in `result`.
class Trials {
 public:
  /// All references outlive it.
  Trials(std::vector<Entrant> entrants, int baseline, VariantRunner& runner, Exchange& exchange,
         TimeBudget& budget, const TunerOptions& options);

  int size() const { return static_cast<int>(entrants_.size()); }
  VariantResult& result(int v) { return entrants_[v].result; }
  const VariantResult& result(int v) const { return entrants_[v].result; }
  /// Whether the variant is neither tried nor ruled out.
  bool IsUntried(int v) const;
  const std::set<int>& tried() const { return tried_; }
  const Race& race() const { return race_; }

  /// Tries the variant that is to be measured first, with several samples.
  absl::Status TryFirst(int v);
  /// Compiles the variants together, then tries one after the other until the budget ends, while
  /// those that come next, `ahead`, are compiled. `tried` is called after each that was tried.
  absl::Status Try(const std::vector<int>& variants, const std::vector<int>& ahead,
                   absl::FunctionRef<absl::Status(int)> tried);

  /// Makes untried again, once, what was dropped while other programs disturbed all its rounds, and
  /// may be promising.
  absl::Status Reconsider();
  /// The number of such variants that are still dropped.
  int Doubtful() const;

  /// Takes one sample of each variant that is left, in random order; then drops slower ones. False
  /// if the budget ended before.
  absl::StatusOr<bool> Round();
  /// Takes a sample of each of two variants. False if the budget ended before, or one failed.
  absl::StatusOr<bool> Pair(int v, int other);
  /// Moves the variants that are left to other memory, and returns whether it has: not where that
  /// takes too much of the budget.
  absl::StatusOr<bool> MoveMemory();
  /// Whether further rounds are unlikely to change the winner.
  absl::StatusOr<bool> IsDecided() const;
  /// Drops all but the `most` quickest, and the baseline.
  absl::Status KeepQuickest(int most);

  /// The best so far, which is first verified at the program's size; -1: nothing was timed.
  absl::StatusOr<int> VerifiedWinner();
  /// The same, verified once more on fresh data after all timing; after an interrupt, the best that
  /// was verified before.
  absl::StatusOr<int> FinalWinner();
  /// Unloads all variants but one.
  void UnloadAllBut(int v);

  /// Median time of a step of the best, in microseconds; infinite if nothing was timed.
  double BestUs() const;
  int Fastest() const { return race_.Fastest(); }
  /// Bound of the time that one more round takes, per variant that is left, ascending.
  std::vector<double> RoundUs() const;

  /// Decides whether all variants or only the best is verified at the program's size: only the best
  /// if verifying takes long.
  absl::Status DecideWhenToVerify();

 private:
  /// The runner's answer. An error names the variant: a faulty kernel may end all ranks.
  template <class T>
  absl::StatusOr<T> Named(absl::StatusOr<T> answer, absl::string_view doing, int v,
                          absl::string_view how = "") const;
  absl::Status TryOne(int v, bool first);
  absl::StatusOr<std::optional<Failure>> FirstRuns(int v, bool first);
  /// Times the variant and the best in turns. Rules the variant out if it is slower. `first`: its
  /// first step.
  absl::StatusOr<std::optional<Failure>> Duel(int v, const VariantRunner::Sample& first);
  absl::StatusOr<std::optional<Failure>> VerifyAtSize(int v);
  /// Whether the variant was dropped without a clean round, and is not far behind.
  bool IsDoubtful(int v) const;
  /// Whether no other program ran shortly before a sample that took so long; notes whether one did.
  bool IsQuiet(const VariantRunner::Sample& sample, double us);
  /// Repeats short samples that other programs disturbed.
  absl::StatusOr<std::optional<Failure>> TakeSample(int v);
  absl::Status Prune(std::vector<Race::Dropped> dropped);
  absl::Status VerifyFirst(absl::FunctionRef<int()> first);
  /// Rules the variant out; if the failure may pass, only at the second time.
  void Fail(int v, const Failure& failure);
  /// Tells the journal of the failures so far, since a variant has run after them: a failure of all
  /// variants, from a stopped rank or a broken compiler, is not the variants' fault.
  void TellOfFailures();
  void Unload(int v);

  std::vector<Entrant> entrants_;
  const int baseline_;
  VariantRunner& runner_;
  Exchange& exchange_;
  TimeBudget& budget_;
  const TunerOptions& options_;
  Race race_;
  std::vector<double> step_us_;  // the latest time of a step; 0: none yet
  int pairs_ = 0;                // of Pair so far
  int moves_ = 0;                // of memory so far
  double move_s_ = 0;            // duration of the latest, on rank 0
  double quiet_us_ = std::numeric_limits<double>::infinity();  // since another program ran
  std::set<int> tried_, loaded_;
  std::set<int> doubtful_, reconsidered_;
  std::set<int> tried_again_;           // variants whose first failure may have passed
  std::vector<int> untold_;             // variants that failed, of which the journal does not know
  double verify_s_ = 0;                 // duration of the latest Verify, on rank 0
  bool verifies_leaders_only_ = false;  // at the program's size
  std::set<int> verified_at_size_;
};

}  // namespace coconet
