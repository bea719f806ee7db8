#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/planning/planned_schedules.h"
#include "autotune/session/load/loading.h"
#include "autotune/store/record.h"

namespace coconet {

/// Schedules that a search over a cost model found, the one with the least simulated time first.
struct Plans {
  std::vector<PlannedSchedule> schedules;
  std::string calibration;  // key of the rates that their times were predicted by

  std::vector<Schedule> OnlySchedules() const;
};

/// Collective, with the same result on all ranks. Plans the iteration (autotune/planning) by this
/// machine's rates, which are measured first if the tuning cache has none and enough time is left.
/// None for a program of which Derive finds all schedules, if only some are admitted, on simulated
/// GPUs, whose times mean nothing, and, with a warning, if the program cannot be planned.
absl::StatusOr<Plans> FindPlans(const Loading& loading, uint64_t seed);

/// On rank 0: keeps what was predicted of plans beside the best measured time of each, and reports
/// both.
void KeepPredictions(const Loading& loading, const Plans& plans,
                     absl::Span<const VariantResult> variants);

}  // namespace coconet
