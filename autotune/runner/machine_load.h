#pragma once

#include <map>

#include "absl/status/statusor.h"
#include "runtime/rank.h"

namespace coconet {

/// Seconds for which the calling thread was ready to run and had no processor core, since it
/// started. 0 if the kernel does not say (/proc/thread-self/schedstat).
double SecondsWithoutCore();

/// The busy times of the cores that this process may use, since the machine started. No cores if
/// the kernel does not say (/proc/stat).
struct CoreTimes {
  std::map<int, double> busy_s;  // by core: seconds of all programs, and of a hypervisor
  double elapsed_s = 0;          // by a steady clock
};
/// The cores are those of the process's first thread: threads of ranks are pinned to one each.
CoreTimes ReadCoreTimes();

/// Processor time in seconds of this process and of its children that have ended.
double OwnProcessorSeconds();

/// Measures how much of the ranks' cores other programs use. One per rank, used by its thread.
class LoadMeter {
 public:
  /// Collective. The share of the ranks' cores that other programs have used since the last call
  /// that returned a share, on the machine with the greatest share; negative at the first call, and
  /// if too little time has passed to tell.
  absl::StatusOr<double> ByOthers(Exchange& exchange);

 private:
  CoreTimes before_;  // at the last call that returned a share
  double own_s_ = 0;  // OwnProcessorSeconds then
};

}  // namespace coconet
