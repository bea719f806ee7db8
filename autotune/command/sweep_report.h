#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/measure/statistics.h"
#include "autotune/store/phases.h"
#include "autotune/store/record.h"
#include "coconet/base/table.h"

namespace coconet {

/// "12 s ago", "3 h ago"
std::string AgeText(int64_t seconds);

/// "2.58x": the baseline's median over the variant's; "" on simulated GPUs, whose times say nothing
/// of real ones.
std::string SpeedupText(const TuningRecord& record, const VariantResult& variant);
/// "12.9 us, 2.58x the baseline (33.3 us)"
std::string BestText(const TuningRecord& record);

/// Returns one line per variant, the fastest first, variants without a time last: schedule,
/// protocol, numbers, median, spread, effective GB/s, speedup over the baseline, and whether it is
/// the best or the baseline, or why it was rejected. `library` replaces "library" in protocols:
/// "thread", "shm", "mpi". Schedules and reasons are cut for lines of `widest` characters, the
/// width of a terminal.
std::string VariantTable(const TuningRecord& record, absl::Span<const VariantResult> variants,
                         absl::string_view library, size_t widest = TableColumn::kWhole);

/// Returns one line per schedule in the same order: its fastest variant, and how many of its
/// variants were timed; and lines for the best and the baseline if these are not the fastest of
/// theirs.
std::string ScheduleTable(const TuningRecord& record, absl::Span<const VariantResult> variants,
                          absl::string_view library, size_t widest = TableColumn::kWhole);

/// Returns VariantTable as a JSON object, with an array of variants, and the seconds of the tuning
/// by phase.
std::string VariantJson(const TuningRecord& record, absl::Span<const VariantResult> variants,
                        absl::string_view program, int ranks, bool from_cache,
                        const PhaseSeconds& seconds = {});

}  // namespace coconet
