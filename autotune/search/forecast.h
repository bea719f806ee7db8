#ifndef COCONET_AUTOTUNE_SEARCH_FORECAST_H_
#define COCONET_AUTOTUNE_SEARCH_FORECAST_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "autotune/store/record.h"

namespace coconet {

/// What the variants that were timed say about the others: the logarithm of a time as a sum over
/// the variant's words, which are its launches ("fuse(RS, C)"), which of them overlap, what is
/// sliced, and its numbers ("pieces=8"). Fitted by ridge regression; a guess of what to try first,
/// never of what is fastest.
class Forecast {
 public:
  /// `variants`: schedule in words, and config.
  explicit Forecast(absl::Span<const VariantResult* const> variants);

  /// One variant's time; the last one counts.
  void Add(int variant, double us);

  /// The most promising of `candidates`, at most so many, the first one first: quick by what is
  /// known, and sooner the less is known of their words, those chosen before it counting as known.
  /// Of equals the last, which is transformed most.
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
