#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/schedule/schedule.h"
#include "jit/launches/order.h"
#include "jit/launches/placed_launches.h"

namespace coconet {

/// How collectives run beside computation: fields of Config.
struct Concurrency {
  bool concurrent = false;
  int64_t bucket = 0;
};

/// Cuts a bound, canonical schedule into launches. `library` does these of the collectives that are
/// in no kernel; kernels do the others. FailedPrecondition if the kernels depend on each other in a
/// cycle. `tensors` and `each` as in PlacedLaunches.
absl::StatusOr<PlacedLaunches> CutIntoLaunches(const Schedule& schedule, LibraryDoes library,
                                               const Concurrency& concurrency = {}, int tensors = 0,
                                               std::vector<bool> each = {});

}  // namespace coconet
