#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autotune/report/report.h"

namespace coconet {

/// The fastest variant of a schedule at a size.
struct SizePoint {
  Timing timing;
  std::string config;  // in words
};

/// A size at which records of a family were tuned.
struct FamilySize {
  double size = 0;
  const ReportRecord* record = nullptr;
  std::map<std::string, SizePoint> by_schedule;  // those that were timed
  std::string best;                              // the schedule that the record chose
  double limit_us = 0;                           // 0: unknown
};

/// Where the fastest schedule changes as the size grows.
struct Crossover {
  std::string from, to;         // schedules
  double below = 0, above = 0;  // tuned sizes around it
  /// Where straight lines between the two sizes, on logarithmic axes, meet; 0 if a schedule was not
  /// timed at both sizes, so that no line is known.
  double size = 0, us = 0;
  /// Whether the confidence intervals of both schedules are apart at both sizes.
  bool is_certain = false;
};

/// Records of one program on one machine at different sizes.
struct SizeFamily {
  std::string title;              // "adam, 2 ranks"
  std::string size_is;            // what the sizes count: "N elements", ...
  std::vector<FamilySize> sizes;  // ascending, each once: the newest record of it
  std::vector<Crossover> crossovers;
  double best_bytes_per_us = 0;  // the greatest effective bandwidth of any record; 0: unknown

  /// The schedules that were timed, those that are the fastest at some size first, then by how
  /// near they come to the fastest.
  std::vector<std::string> Schedules() const;
};

/// The families with at least two sizes. `records` must outlive them.
std::vector<SizeFamily> FamiliesOf(absl::Span<const ReportRecord> records);

/// Walks along the fastest schedule from size to size.
std::vector<Crossover> CrossoversOf(absl::Span<const FamilySize> sizes);

}  // namespace coconet
