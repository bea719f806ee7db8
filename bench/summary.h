#ifndef COCONET_BENCH_SUMMARY_H_
#define COCONET_BENCH_SUMMARY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/finding.h"
#include "bench/row.h"

namespace coconet::bench {

// From what workers found to the fields of a row.

/// The fastest finding of a side; null when it took no part.
const Finding* FastestOf(absl::Span<const Finding> findings, absl::string_view side);
/// A fact's detail, "" when there is none; `name`: of which contender, "" for any.
std::string FactOf(absl::Span<const Finding> findings, absl::string_view fact,
                   absl::string_view name = "");
/// The same as a number, -1 when there is none.
int64_t CountOf(absl::Span<const Finding> findings, absl::string_view fact,
                absl::string_view name = "");

/// "<side>_us", and its confidence interval as "<side>_low_us" and "<side>_high_us".
void SetTime(Row& row, absl::string_view side, const Timing& timing);
/// The time of ours, with "rounds" and "steps_a_sample".
void SetOurs(Row& row, const Finding& ours);
/// What was tuned: "variant" in words, "tuned" (here, or from the cache), "threads" of all ranks.
void SetVariant(Row& row, absl::Span<const Finding> findings);
/// "limit_us", "of_limit", "limit_kernel" (which was fastest), "gb_s" of ours; nothing where the
/// limit took no part. After SetOurs.
void SetLimit(Row& row, absl::Span<const Finding> findings, const Cell& cell);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_SUMMARY_H_
