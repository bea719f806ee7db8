#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "autotune/search/trials.h"
#include "autotune/store/history/speed_up.h"
#include "runtime/rank.h"

namespace coconet {

/// Finds out how many times as fast as the baseline the winner of the trials is, by rounds of both
/// in many memories, and compares that with what earlier runs have measured. Collective.
class Settling {
 public:
  using Say = std::function<void(absl::string_view)>;
  /// All references outlive it.
  Settling(Trials& trials, int baseline, Exchange& exchange, Say say)
      : trials_(trials), baseline_(baseline), exchange_(exchange), say_(std::move(say)) {}

  /// Sets what earlier runs have measured, on rank 0.
  void SetHistory(std::vector<Measured> history) { history_ = std::move(history); }
  /// Times the winner and the baseline until their ratio is known well, or the budget ends. Where
  /// it is not what earlier runs have measured, measures on, and then notes whether it still is
  /// not.
  absl::Status Settle();

  /// The speed-up of a variant over the variant that stands for the baseline, whose interval covers
  /// what earlier runs have measured, where that differs. 1 if both are the same; not measured
  /// where another variant stands for the baseline.
  SpeedUp Of(int winner, int baseline) const;
  /// What this run has measured of a winner, for later ones; no rounds if it is the baseline.
  Measured Own(int winner) const;
  /// Whether earlier runs have measured another speed-up.
  bool differs() const { return differs_; }

 private:
  absl::Status TimePairs(int most, bool until_known);
  /// The speed-ups of the winner that earlier runs have measured with ranks as near to each other,
  /// and that do not agree with that of this run.
  std::vector<SpeedUp> Others(int winner) const;

  Trials& trials_;
  const int baseline_;
  Exchange& exchange_;
  const Say say_;
  std::vector<Measured> history_;
  bool differs_ = false;
};

}  // namespace coconet
