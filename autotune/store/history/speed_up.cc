#include "autotune/store/history/speed_up.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coconet {
namespace {

constexpr double kMostSpeedUp = 1e12, kLongestMeetingUs = 1e12;
/// Ranks that take longer to meet by this factor are on cores that lie otherwise.
constexpr double kOtherMeeting = 1.7;
constexpr double kMargin = 1.05;  // between intervals that disagree

}  // namespace

double SpeedUp::HalfWidth() const {
  return low > 0 ? std::sqrt(high / low) - 1 : std::numeric_limits<double>::infinity();
}

std::string Text(const SpeedUp& speed_up) {
  if (speed_up.rounds == 0) return "";
  if (!speed_up.IsKnown()) {
    return absl::StrFormat(
        "between %.3gx and %.3gx (measured beside other programs, or unlike in earlier runs)",
        speed_up.low, speed_up.high);
  }
  if (speed_up.low == speed_up.high) return absl::StrFormat("%.2fx", speed_up.ratio);
  return absl::StrFormat("%.2fx (%.2f to %.2f)", speed_up.ratio, speed_up.low, speed_up.high);
}

absl::Status Validate(const SpeedUp& up) {
  const bool ordered = up.low > 0 && up.low <= up.ratio && up.ratio <= up.high;
  if (up.rounds >= 0 && ordered && up.high < kMostSpeedUp && up.meeting_us >= 0 &&
      up.meeting_us < kLongestMeetingUs)
    return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("want a speed-up with 0 < low <= ratio <= high, have ",
                                          up.low, ", ", up.ratio, ", ", up.high, " of ", up.rounds,
                                          " rounds, where ranks met in ", up.meeting_us, " us"));
}

absl::Status Validate(const Measured& measured) {
  if (absl::Status valid = Validate(measured.speed_up); !valid.ok()) return valid;
  if (measured.load >= 0 && measured.load <= 1 && measured.measured_s >= 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("want a load of 0 to 1 and a time, have ", measured.load,
                                          " at ", measured.measured_s));
}

bool MeetAlike(double a_us, double b_us) {
  return a_us == 0 || b_us == 0 || std::max(a_us, b_us) < kOtherMeeting * std::min(a_us, b_us);
}

bool IsSameState(const SpeedUp& a, const SpeedUp& b) {
  return MeetAlike(a.meeting_us, b.meeting_us);
}

bool Disagree(const SpeedUp& a, const SpeedUp& b) {
  return a.IsKnown() && b.IsKnown() && (a.low > kMargin * b.high || b.low > kMargin * a.high);
}

}  // namespace coconet
