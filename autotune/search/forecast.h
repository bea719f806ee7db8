#ifndef COCONET_AUTOTUNE_SEARCH_FORECAST_H_
#define COCONET_AUTOTUNE_SEARCH_FORECAST_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "autotune/store/record.h"

namespace coconet {

/// Predicts times of variants from those that were timed: the logarithm of a time is a sum over the
/// variant's features, which are its launches ("fuse(RS, C)"), overlapped launches, slices, and
/// numbers ("pieces=8"). Fitted by ridge regression. Decides what is tried first, never what wins.
class Forecast {
 public:
  /// `variants`: schedule in words, and config.
  explicit Forecast(absl::Span<const VariantResult* const> variants);

  /// Sets a variant's time.
  void Add(int variant, double us);

  /// Returns at most `most` of `candidates`, the most promising first: those with a short predicted
  /// time, and those with features that few timed or chosen variants have. Of equals the last,
  /// which has most transformations.
  std::vector<int> MostPromising(const std::vector<int>& candidates, size_t most) const;

 private:
  struct Fit {
    double mean = 0;
    std::vector<double> weight;  // by word
    std::vector<int> count;      // by word: timed variants that have it
  };
  Fit Fitted() const;
  double Promise(int variant, const Fit& fit) const;  // less is better

  std::vector<std::vector<int>> words_;  // by variant, each word once
  int word_count_ = 0;
  std::vector<double> log_us_;  // by variant; NaN: not timed
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_SEARCH_FORECAST_H_
