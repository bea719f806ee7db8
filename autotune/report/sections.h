#pragma once

#include "absl/types/span.h"
#include "autotune/report/family.h"
#include "autotune/report/page.h"
#include "autotune/report/report.h"

namespace coconet {

// The parts of a report's page.

/// A line per record, each a link to its chart.
Html OverviewOf(absl::Span<const ReportRecord> records);

/// The id of a record's chart.
std::string IdOf(const ReportRecord& of);
/// A record: what it depends on, what was verified, and a chart of its variants with the reasons
/// why each lost.
Html RecordChart(const ReportRecord& of);

/// Time over size, a line per schedule, with crossovers and the limit.
Html FamilyChart(const SizeFamily& family);

/// Predicted times over measured ones.
Html PredictionChart(absl::Span<const Prediction> predictions);

/// The axes of a chart: a frame, grid lines and labels, within a drawing of this height.
struct ChartAxes {
  std::vector<std::pair<double, std::string>> x, y;  // where from 0 to 1, from the left and bottom
  std::string x_title, y_title;
};
Html AxesOf(const ChartAxes& axes, double height);

}  // namespace coconet
