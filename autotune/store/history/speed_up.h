#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace coconet {

/// How many times as fast as the baseline a variant is, by the rounds of a run in which both ran,
/// one after the other, undisturbed by other programs.
struct SpeedUp {
  double ratio = 1, low = 1, high = 1;  // with an interval of 95 %
  int rounds = 0;                       // 0: not measured
  /// How long ranks of one node took to meet (VariantRunner::MeetingUs); 0: not known.
  double meeting_us = 0;

  /// Half the width of the interval, as a share: 0.05 means +-5 %.
  double HalfWidth() const;
  /// Whether the interval is so narrow that the ratio says something: +-kMostHalfWidth.
  bool IsKnown() const { return rounds > 0 && HalfWidth() <= kMostHalfWidth; }
  static constexpr double kMostHalfWidth = 0.15;
  bool operator==(const SpeedUp&) const = default;
};

/// "2.13x (2.08 to 2.19)"; where the interval is wide, "between 1.9x and 4.2x (measured beside
/// other programs, or unlike in earlier runs)"; "" where nothing was measured.
std::string Text(const SpeedUp& speed_up);

/// DataLoss unless 0 < low <= ratio <= high, all finite.
absl::Status Validate(const SpeedUp& speed_up);

/// Whether ranks that meet in these times (microseconds; 0: not known) are on cores that lie alike.
bool MeetAlike(double a_us, double b_us);
/// Whether ranks met about as fast in both, as far as is known. If not, the cores of a virtual
/// machine were placed otherwise, and ratios are those of two machines.
bool IsSameState(const SpeedUp& a, const SpeedUp& b);

/// Whether both are known, and their intervals, with a margin, have nothing in common.
bool Disagree(const SpeedUp& a, const SpeedUp& b);

/// What one run has measured of a key.
struct Measured {
  std::string best, baseline;  // "TRACE|CONFIG" of the variants
  SpeedUp speed_up;
  double load = 0;         // share of the cores that other programs used
  int64_t measured_s = 0;  // Unix time
  bool operator==(const Measured&) const = default;
};
absl::Status Validate(const Measured& measured);

}  // namespace coconet
