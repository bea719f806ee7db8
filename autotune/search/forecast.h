#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "autotune/search/variants.h"

namespace coconet {

/// By variant the numbers of its features, each once: the steps of its schedule's outline, the
/// groups of its overlaps, its sliced states, and the values of its config. Equal features have
/// equal numbers; they are 0, 1, ...
std::vector<std::vector<int>> FeaturesOf(absl::Span<const Variant> variants);

/// Predicts times of variants from their expected times (SchedulePrior) and from the times of those
/// that were timed: the logarithm of a time is that of the expected one plus a sum over the
/// variant's features, which is fitted by ridge regression. Decides what is tried first, never what
/// wins.
class Forecast {
 public:
  /// `features` by variant, as FeaturesOf returns them. `prior_us` by variant; empty: nothing is
  /// expected.
  explicit Forecast(std::vector<std::vector<int>> features, std::vector<double> prior_us = {});

  /// Sets a variant's time.
  void Add(int variant, double us);

  /// Returns at most `most` of `candidates`, the most promising first: those with a short predicted
  /// time, and those with features that few timed or chosen variants have. Among equals the last
  /// one comes first, which has most transformations.
  std::vector<int> MostPromising(const std::vector<int>& candidates, size_t most) const;

  /// Whether one of the candidates is predicted to take less than `us`.
  bool AnyBelow(const std::vector<int>& candidates, double us) const;

 private:
  struct Fit {
    double mean = 0;
    std::vector<double> weight;  // by feature
    std::vector<int> count;      // by feature: timed variants that have it
  };
  Fit Fitted() const;
  double LogUs(int variant, const Fit& fit) const;
  double Promise(int variant, const Fit& fit) const;  // less is better

  std::vector<std::vector<int>> features_;  // by variant
  std::vector<double> prior_log_us_;        // by variant
  int feature_count_ = 0;
  std::vector<double> log_us_;  // by variant; NaN: not timed
};

}  // namespace coconet
