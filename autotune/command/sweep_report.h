#ifndef COCONET_AUTOTUNE_COMMAND_SWEEP_REPORT_H_
#define COCONET_AUTOTUNE_COMMAND_SWEEP_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/store/record.h"

namespace coconet {

/// "431 ns", "12.9 us", "13.1 ms": three digits.
std::string TimeText(double us);
/// "12 s ago", "3 h ago"
std::string AgeText(int64_t seconds);

/// A line a variant, the fastest first, those without a time last: schedule, protocol, numbers,
/// median, spread, effective GB/s, speedup over the baseline; which is the best and which the
/// baseline, or why it was rejected. At most 140 columns. `library` is what library collectives are
/// here ("thread", "shm", "mpi").
std::string VariantTable(const TuningRecord& record, absl::Span<const VariantResult> variants,
                         absl::string_view library);

/// The same for programs: one object, with the variants as an array of them.
std::string VariantJson(const TuningRecord& record, absl::Span<const VariantResult> variants,
                        absl::string_view program, int ranks, bool from_cache);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_COMMAND_SWEEP_REPORT_H_
