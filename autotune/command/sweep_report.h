#pragma once

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

/// "2.58x": the baseline's median over the variant's.
std::string SpeedupText(const TuningRecord& record, const VariantResult& variant);

/// Returns one line per variant, the fastest first, variants without a time last: schedule,
/// protocol, numbers, median, spread, effective GB/s, speedup over the baseline, and whether it is
/// the best or the baseline, or why it was rejected. At most 170 columns. `library` replaces
/// "library" in protocols: "thread", "shm", "mpi".
std::string VariantTable(const TuningRecord& record, absl::Span<const VariantResult> variants,
                         absl::string_view library);

/// Returns the same as a JSON object, with an array of variants.
std::string VariantJson(const TuningRecord& record, absl::Span<const VariantResult> variants,
                        absl::string_view program, int ranks, bool from_cache);

}  // namespace coconet
