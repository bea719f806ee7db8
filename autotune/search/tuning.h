#ifndef COCONET_AUTOTUNE_SEARCH_TUNING_H_
#define COCONET_AUTOTUNE_SEARCH_TUNING_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/measure/race.h"
#include "autotune/search/forecast.h"
#include "autotune/search/tuner.h"

namespace coconet {

/// Length of a sample. In shorter ones, the clock's resolution and the ranks' unequal starts show.
inline constexpr double kSampleUs = 1000;

/// State of one call of Tune. tuning.cc tries, times and stores variants; explore.cc chooses which
/// to try next.
class Tuning {
 public:
  Tuning(std::vector<Entrant> entrants, int baseline, VariantRunner& runner, Exchange& exchange,
         const TunerOptions& options);

  absl::StatusOr<Tuned> Run();

 private:
  enum class Stop : uint8_t { kNo, kBudget, kInterrupted };

  int size() const { return static_cast<int>(entrants_.size()); }
  VariantResult& result(int v) { return entrants_[v].result; }
  /// Whether the variant is neither tried nor ruled out.
  bool Open(int v) const {
    return entrants_[v].result.verdict == Verdict::kNotMeasured &&
           entrants_[v].result.reason.empty() && !tried_.count(v);
  }
  void Say(absl::string_view text) const {
    if (options_.progress) options_.progress(text);
  }

  absl::Status MarkEarlierFailures();
  std::vector<int> Scouts() const;
  std::vector<int> Followers();
  double Quickest(int v) const;
  enum class Of : uint8_t { kScouts, kAll };
  /// Tries open variants, the most promising first, until that share of the budget is spent.
  absl::Status Explore(Of which, double share);
  absl::StatusOr<std::vector<int>> NextBatch(const std::vector<int>& open, double share);
  bool AnyOpen() const;

  /// Collective. Rank 0's numbers, for decisions by its clock or its floating-point library.
  absl::StatusOr<std::vector<int>> FromRank0(const std::vector<int>& mine);

  bool ShouldStop() const { return Asked() != Stop::kNo; }
  Stop Asked() const;
  /// Collective. False once the budget is spent or the user interrupted; then it stays false.
  absl::StatusOr<bool> GoOn();
  std::string StopReason() const;

  // The runner's calls. Their errors name the variant: a faulty kernel may end all ranks.
  absl::StatusOr<std::optional<Failure>> Load(int v);
  absl::StatusOr<std::optional<Failure>> Verify(int v);
  absl::StatusOr<VariantRunner::Sample> Time(int v, int warm_up, int steps);

  absl::Status Try(const std::vector<int>& variants);
  /// Loads, verifies, and takes the first sample.
  absl::Status Screen(int v);
  absl::StatusOr<std::optional<Failure>> FirstRuns(int v);
  absl::StatusOr<std::optional<Failure>> VerifyAtSize(int v);
  absl::Status DecideWhenToVerify();
  absl::Status VerifyLeader();
  /// Runs at most `most` rounds within that share of the budget. Drops variants that cannot win,
  /// and the slowest where time is too short for all.
  absl::Status Rounds(int most, double share);
  absl::Status Thin(int rounds, double share);
  void Prune(const std::vector<Race::Dropped>& dropped);
  absl::StatusOr<std::optional<Failure>> TakeSample(int v);
  void Fail(int v, const Failure& failure);

  absl::Status VerifyWinner();
  absl::StatusOr<Tuned> Finish();
  TuningRecord MakeRecord(int winner);
  void FillTimings();
  absl::Status StoreBestSoFar();

  std::vector<Entrant> entrants_;
  int baseline_;
  VariantRunner& runner_;
  Exchange& exchange_;
  const TunerOptions& options_;
  Race race_;
  Forecast forecast_;
  std::vector<double> step_us_;  // the latest time of a step; 0: none yet
  Stop stop_ = Stop::kNo;
  std::set<int> tried_, loaded_;
  double best_first_us_ = std::numeric_limits<double>::infinity();
  int verified_ = 0;
  double verify_s_ = 0;                 // duration of the latest Verify, on rank 0
  bool verifies_leaders_only_ = false;  // at the program's size
  std::set<int> verified_at_size_;
  size_t open_ = 0;  // candidates at the latest forecast, on rank 0
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SEARCH_TUNING_H_
