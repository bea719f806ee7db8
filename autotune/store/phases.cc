#include "autotune/store/phases.h"

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"

namespace coconet {

absl::string_view Name(Phase phase) {
  switch (phase) {
    case Phase::kOther:
      return "other";
    case Phase::kParts:
      return "parts";
    case Phase::kDerive:
      return "derive";
    case Phase::kEnumerate:
      return "enumerate";
    case Phase::kPlan:
      return "plan";
    case Phase::kLower:
      return "lower";
    case Phase::kCompile:
      return "compile";
    case Phase::kLoad:
      return "load";
    case Phase::kAllocate:
      return "allocate";
    case Phase::kBind:
      return "bind";
    case Phase::kMakeData:
      return "make data";
    case Phase::kVerifySmall:
      return "verify small";
    case Phase::kVerifyAtSize:
      return "verify at size";
    case Phase::kTime:
      return "time";
  }
  CC_CHECK(false);
  return "";
}

std::string Text(const PhaseSeconds& seconds) {
  constexpr double kShown = 0.01;
  std::vector<std::string> parts;
  for (size_t phase = 1; phase <= kPhases; ++phase) {  // others last
    const double s = seconds[phase % kPhases];
    if (s >= kShown)
      parts.push_back(absl::StrFormat("%s %.2f s", Name(static_cast<Phase>(phase % kPhases)), s));
  }
  return absl::StrJoin(parts, ", ");
}

Phase Phases::Enter(Phase phase) {
  const Clock::time_point now = Clock::now();
  seconds_[static_cast<size_t>(now_)] += std::chrono::duration<double>(now - since_).count();
  since_ = now;
  return std::exchange(now_, phase);
}

PhaseSeconds Phases::Seconds() {
  Enter(now_);
  return seconds_;
}

}  // namespace coconet
