#include "bench/summary.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/memory_limit.h"

namespace coconet::bench {

const Finding* FastestOf(absl::Span<const Finding> findings, absl::string_view side) {
  const Finding* fastest = nullptr;
  for (const Finding& f : findings) {
    if (f.side == side && (fastest == nullptr || f.timing.median_us < fastest->timing.median_us))
      fastest = &f;
  }
  return fastest;
}

std::string FactOf(absl::Span<const Finding> findings, absl::string_view fact,
                   absl::string_view name) {
  for (const Finding& f : findings) {
    if (f.side == fact && (name.empty() || f.name == name)) return f.detail;
  }
  return "";
}

int64_t CountOf(absl::Span<const Finding> findings, absl::string_view fact,
                absl::string_view name) {
  int64_t count = -1;
  return absl::SimpleAtoi(FactOf(findings, fact, name), &count) ? count : -1;
}

void SetTime(Row& row, absl::string_view side, const Timing& timing) {
  row.Set(absl::StrCat(side, "_us"), timing.median_us)
      .Set(absl::StrCat(side, "_low_us"), timing.low_us)
      .Set(absl::StrCat(side, "_high_us"), timing.high_us);
}

void SetOurs(Row& row, const Finding& ours) {
  SetTime(row, "ours", ours.timing);
  row.Set("rounds", ours.timing.samples)
      .Set("steps_a_sample", ours.steps)
      .Set("preempted", ours.preempted);
  row.Set("data", "warm: a sample follows a step");
}

void SetVariant(Row& row, absl::Span<const Finding> findings) {
  row.Set("variant", FactOf(findings, "variant")).Set("tuned", FactOf(findings, "tuned"));
  row.Set("threads", CountOf(findings, "threads") * static_cast<int64_t>(row.Number("ranks")));
}

void SetLimit(Row& row, absl::Span<const Finding> findings, const Cell& cell) {
  const Finding* const limit = FastestOf(findings, "limit");
  if (limit == nullptr) return;
  const double ours_us = row.Number("ours_us");
  const auto ranks = static_cast<int>(row.Number("ranks"));
  SetTime(row, "limit", limit->timing);
  row.Set("of_limit", limit->timing.median_us / ours_us)
      .Set("limit_kernel", limit->name)
      .Set("gb_s", static_cast<double>(StepBytes(cell, ranks)) * ranks / ours_us / 1e3);
}

}  // namespace coconet::bench
