#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/finding.h"
#include "bench/row.h"

namespace coconet::bench {

// Conversions of workers' findings to the fields of a row.

/// The fastest finding of a side; null if it took no part.
const Finding* FastestOf(absl::Span<const Finding> findings, absl::string_view side);
/// The detail of fact `fact`, of contender `name` ("": of any); "" if there is none.
std::string FactOf(absl::Span<const Finding> findings, absl::string_view fact,
                   absl::string_view name = "");
/// The same as a number; -1 if there is none.
int64_t CountOf(absl::Span<const Finding> findings, absl::string_view fact,
                absl::string_view name = "");

/// Sets "<side>_us", and its confidence interval "<side>_low_us" and "<side>_high_us".
void SetTime(Row& row, absl::string_view side, const Timing& timing);
/// Sets the time of ours, "rounds" and "steps_a_sample".
void SetOurs(Row& row, const Finding& ours);
/// Sets what was tuned: "variant" in words, "tuned" (here, or from the cache), "threads"
/// of all ranks.
void SetVariant(Row& row, absl::Span<const Finding> findings);
/// Sets "limit_us", "of_limit", "limit_kernel" (the fastest) and "gb_s" of ours, if the limit took
/// part. Requires SetOurs.
void SetLimit(Row& row, absl::Span<const Finding> findings, const Cell& cell);

}  // namespace coconet::bench
