#ifndef COCONET_BENCH_FINDING_H_
#define COCONET_BENCH_FINDING_H_

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

/// What a worker tells the program that started it: a time, or a fact (`detail` alone).
struct Finding {
  std::string side = {};  // "ours", "baseline", "limit"; of a fact its name
  Cell cell = {};
  std::string name = {};  // which form of the baseline, which kernel of the limit
  Timing timing = {};     // of one step
  int64_t steps = 0;      // per sample
  int preempted = 0;      // samples in which something else took a rank's core away
  std::string detail = {};
  bool operator==(const Finding&) const = default;
};

/// A file with one line per finding.
absl::Status WriteFindings(const std::string& file, absl::Span<const Finding> findings);
absl::StatusOr<std::vector<Finding>> ReadFindings(const std::string& file);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_FINDING_H_
