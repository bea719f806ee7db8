#pragma once

#include "autotune/store/record.h"

namespace coconet {

/// Whether a search has tried enough of a program's variants. It has if
/// - every variant was tried or ruled out; or
/// - enough were drawn at random to be 95 % sure that fewer than 1 in 20 of the rest are more than
///   3 % faster than the best found, and either the strategy predicts none that is more than 3 %
///   faster, or its last kPatience predictions brought no such gain.
///
/// If K of U untried variants are better, n draws without replacement miss all of them with the
/// probability prod (1 - K / (U - i)) over i < n, which is below 5 % at n = 59 for K = U / 20 and
/// large U, and earlier for small U. The best found is at least as good as the best of the draws,
/// so draws count although the best found changes meanwhile.
class Coverage {
 public:
  static constexpr double kGain = 0.03;   // what counts as faster
  static constexpr double kShare = 0.05;  // of the untried that may be better
  static constexpr double kDoubt = 0.05;  // probability that more are
  static constexpr int kPatience = 59;

  /// Continues from earlier runs.
  Coverage(const SearchState& earlier, double best_us)
      : drawn_(earlier.drawn), since_gain_(earlier.since_gain), gain_us_(best_us) {}

  /// Counts a tried variant; the best takes `best_us` now.
  void Tried(bool drawn, double best_us);
  /// Whether more draws are needed among so many untried variants.
  bool NeedsDraws(int untried) const;
  /// Whether kPatience predictions in a row brought no gain.
  bool IsOutOfPatience() const { return since_gain_ >= kPatience; }

  int drawn() const { return drawn_; }
  int since_gain() const { return since_gain_; }

 private:
  int drawn_, since_gain_;
  double gain_us_;
};

/// The number of draws that NeedsDraws asks for in all if so many variants are drawn or untried.
int DrawsFor(int variants);

}  // namespace coconet
