#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace coconet {

/// The phases that the time of a tuning is spent in.
enum class Phase : uint8_t {
  kOther,  // decisions, exchanges, the tuning cache
  kParts,  // tuning parts of the program on their own
  kDerive,
  kEnumerate,  // configs, expected times
  kPlan,       // calibration and the joint search for training steps
  kLower,
  kCompile,  // waiting for compilers
  kLoad,     // binaries
  kAllocate,
  kBind,
  kMakeData,      // and what the interpreter computes of it before any variant runs
  kVerifySmall,   // at small sizes
  kVerifyAtSize,  // at the program's own
  kTime,
};
inline constexpr size_t kPhases = static_cast<size_t>(Phase::kTime) + 1;
absl::string_view Name(Phase phase);  // "other", "derive", ...

/// Seconds by phase.
using PhaseSeconds = std::array<double, kPhases>;
/// "lower 0.2 s, compile 3.1 s, ...", the phases that took a hundredth of a second or more.
std::string Text(const PhaseSeconds& seconds);

/// Counts the time since its creation by phase. For one thread.
class Phases {
 public:
  Phases() : since_(Clock::now()) {}

  /// A part of a phase, from its creation until it is destroyed; the time of parts that begin
  /// meanwhile counts as theirs. They end in the reverse order.
  class Part {
   public:
    /// `phases` may be null: nothing is counted.
    Part(Phases* phases, Phase phase) : phases_(phases) {
      if (phases_ != nullptr) before_ = phases_->Enter(phase);
    }
    ~Part() {
      if (phases_ != nullptr) phases_->Enter(before_);
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    Phases* const phases_;
    Phase before_{};
  };

  /// Up to now.
  PhaseSeconds Seconds();

 private:
  using Clock = std::chrono::steady_clock;
  /// Returns the previous phase.
  Phase Enter(Phase phase);

  Clock::time_point since_;
  Phase now_ = Phase::kOther;
  PhaseSeconds seconds_{};
};

}  // namespace coconet
