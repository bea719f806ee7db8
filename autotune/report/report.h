#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "autotune/planning/plan_iteration.h"
#include "autotune/store/calibration_rows.h"
#include "autotune/store/record.h"

namespace coconet {

/// A record with its variants.
struct ReportRecord {
  TuningRecord record;
  std::vector<VariantResult> variants;  // the fastest first, variants without a time last
};

/// What a report shows of a tuning cache.
struct Report {
  std::string cache;   // where it is, in words
  std::string which;   // what was asked for: "all", a program, the beginning of a key
  int64_t made_s = 0;  // Unix time
  std::vector<ReportRecord> records;  // the newest first
  std::vector<Prediction> predictions;
};

/// One page for browsers, which needs no other file and no network: an overview; time over size
/// per program and machine, with the sizes at which the fastest schedule changes; a chart of all
/// variants of each record; and predicted times beside measured ones.
std::string ReportHtml(const Report& report);
/// The same numbers as one JSON object.
std::string ReportJson(const Report& report);

/// One page with the timeline of a plan: its lanes with the names of layers, and its figures.
/// `title` and `lines` say what was planned.
std::string PlanHtml(const std::string& title, absl::Span<const std::string> lines,
                     const PlannedIteration& planned);

}  // namespace coconet
