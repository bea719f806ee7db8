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

inline constexpr double kSampleUs =
    1000;  // below this the clock and the ranks' ragged start would show

/// One Tune on its way: what to try next is in explore.cc, the rest in tuner.cc.
class Tuning {
 public:
  Tuning(std::vector<Entrant> entrants, int baseline, VariantRunner& runner, Exchange& exchange,
         const TunerOptions& options);

  absl::StatusOr<Tuned> Run();

 private:
  enum class Stop : uint8_t { kNo, kBudget, kInterrupted };

  int size() const { return static_cast<int>(entrants_.size()); }
  VariantResult& result(int v) { return entrants_[v].result; }
  /// Not yet tried, and nothing says that it need not be.
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
  /// Tries what is open, the most promising first, until that share of the budget is spent.
  absl::Status Explore(Of which, double share);
  absl::StatusOr<std::vector<int>> NextBatch(const std::vector<int>& open, double share);
  bool AnyOpen() const;

  /// Collective: what rank 0 says. Decisions that take its clock, or its logarithms.
  absl::StatusOr<std::vector<int>> FromRank0(const std::vector<int>& mine);

  bool ShouldStop() const { return Asked() != Stop::kNo; }
  Stop Asked() const;
  /// Collective: whether to go on. Once the answer is no it stays no.
  absl::StatusOr<bool> GoOn();
  std::string StopReason() const;

  // The runner's, whose errors say at which variant they came: a kernel's mistake may end the
  // world.
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
  /// At most so many, as long as that share of the budget is not spent: who cannot win goes, and,
  /// where there is not the time for all, the slowest.
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
  double verify_s_ = 0;                 // that the latest check at the real size took, on rank 0
  bool verifies_leaders_only_ = false;  // at the real size
  std::set<int> verified_at_size_;
  size_t open_ = 0;  // candidates at the latest forecast, on rank 0
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SEARCH_TUNING_H_
