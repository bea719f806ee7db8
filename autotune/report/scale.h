#pragma once

#include <string>
#include <vector>

namespace coconet {

/// A logarithmic axis over positive numbers.
class LogScale {
 public:
  /// Around all of `values`, with some room at both ends. Values that are not positive and finite
  /// do not count.
  explicit LogScale(const std::vector<double>& values);

  /// Where a value lies between the ends: 0 to 1.
  double At(double value) const;
  /// The same as a percentage, "12.345%".
  std::string Percent(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }
  /// At most `most` round numbers within the ends: powers of ten, or else 1, 2, 5, or else equal
  /// steps. At least two.
  std::vector<double> Ticks(int most) const;

 private:
  double low_ = 1, high_ = 10;
};

/// "12.345%" of 0.12345.
std::string PercentOf(double share);
/// A length of a drawing: "12.3".
std::string Length(double pixels);

/// "1.5k", "20M": of numbers of elements, for axes.
std::string CountText(double count);
/// "10 us", "2 ms": of round numbers, for axes.
std::string RoundTimeText(double us);

}  // namespace coconet
