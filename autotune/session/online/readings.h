#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/rank.h"

namespace coconet {

/// What one rank has measured since the ranks last agreed, in microseconds.
struct Readings {
  struct Span {
    double begin_us = 0, end_us = 0;  // by the machine's clock
  };
  std::vector<Span> calls;  // the timed ones
  // The last agreement took so long until the ranks had met, and after that.
  double exchange_us = 0, work_us = 0;
};

/// The same on all ranks.
struct AgreedReadings {
  std::vector<double> call_us;
  double agreement_us = 0;  // of the last one
};

/// Collective. What all ranks have measured together: a call takes from when the last rank began it
/// until the last one ended it, if they are on one machine, whose clock they share; else as long as
/// on the rank where it took longest. All ranks have timed the same calls.
absl::StatusOr<AgreedReadings> AgreeOn(Exchange& exchange, const Readings& mine, bool one_machine);

}  // namespace coconet
