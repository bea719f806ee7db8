#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/store/record.h"
#include "bench/cell.h"

namespace coconet::bench {

/// A worker's result for the program that started it: a time, or a fact (only `detail`).
struct Finding {
  std::string side = {};  // "ours", "baseline", "limit"; of a fact: its name
  Cell cell = {};
  std::string name = {};  // the form of the baseline, or the kernel of the limit
  Timing timing = {};     // of one step
  int64_t steps = 0;      // per sample
  int preempted = 0;      // samples in which a rank was preempted
  std::string detail = {};
  bool operator==(const Finding&) const = default;
};

/// A file with one line per finding.
absl::Status WriteFindings(const std::string& file, absl::Span<const Finding> findings);
absl::StatusOr<std::vector<Finding>> ReadFindings(const std::string& file);

}  // namespace coconet::bench
