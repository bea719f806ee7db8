#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/store/record.h"
#include "bench/harness/row.h"

namespace coconet::bench {

/// A worker's result for the program that started it: a time, or a fact (only `detail`).
struct Finding {
  std::string side = {};  // "ours", "baseline", "limit"; of a fact: its name
  std::string of = {};    // what it is a step of, in words
  std::string name = {};  // the form of the baseline, or the kernel of the limit
  Timing timing = {};     // of one step
  int64_t steps = 0;      // per sample
  int preempted = 0;      // samples in which a rank was preempted
  std::string detail = {};
  bool operator==(const Finding&) const = default;

  /// The fields in their order in a line; each is a word (bench/harness/worker.h).
  static auto Fields(auto& f) {
    return std::tie(f.side, f.of, f.name, f.timing.median_us, f.timing.low_us, f.timing.high_us,
                    f.timing.samples, f.steps, f.preempted, f.detail);
  }
};

/// The fastest finding of a side; null if it took no part.
const Finding* FastestOf(absl::Span<const Finding> findings, absl::string_view side);
/// The detail of fact `fact`, of contender `name` ("": of any); "" if there is none.
std::string FactOf(absl::Span<const Finding> findings, absl::string_view fact,
                   absl::string_view name = "");
/// The detail as an integer; -1 if there is none.
int64_t CountOf(absl::Span<const Finding> findings, absl::string_view fact,
                absl::string_view name = "");

/// SetTime of the fastest finding of each side that took part, and "rounds", those of "ours".
void SetTimes(Row& row, absl::Span<const Finding> findings,
              std::initializer_list<absl::string_view> sides);
/// Sets each fact as a number or a text; the field is its name, behind "SIDE_" if it is about
/// another side than ours, one of whose forms may be `ours`.
void SetFacts(Row& row, absl::Span<const Finding> findings, absl::string_view ours = "ours");
/// SetFacts; and SetTime of the fastest finding of each side, "SIDE_form" if it has one, and
/// "rounds".
void SetFindings(Row& row, absl::Span<const Finding> findings);

/// A file with one line per finding.
absl::Status WriteFindings(const std::string& file, absl::Span<const Finding> findings);
absl::StatusOr<std::vector<Finding>> ReadFindings(const std::string& file);

}  // namespace coconet::bench
