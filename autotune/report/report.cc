#include "autotune/report/report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/report/family.h"
#include "autotune/report/page.h"
#include "autotune/report/sections.h"

namespace coconet {

std::string ReportHtml(const Report& report) {
  Html overview, families, charts;
  if (report.records.empty())
    overview = Note("There is no record: coconet sweep makes them.");
  else
    overview = OverviewOf(report.records);
  const std::vector<SizeFamily> found = FamiliesOf(report.records);
  for (const SizeFamily& family : found) families.Add(FamilyChart(family));
  if (found.empty())
    families = Note(
        "No program was tuned at two sizes or more on one machine: tune it at another size, and "
        "this shows which schedule is the fastest at which size.");
  for (const ReportRecord& record : report.records) charts.Add(RecordChart(record));
  std::vector<PageSection> sections = {{"overview", "Overview", overview},
                                       {"sizes", "Time over size", families}};
  if (!report.records.empty()) sections.push_back({"variants", "Variants", charts});
  sections.push_back(
      {"predictions", "Predicted beside measured", PredictionChart(report.predictions)});
  const size_t count = report.records.size();
  return Page(report.which == "all" ? "What the tuning cache knows"
                                    : absl::StrCat("What the tuning cache knows of ", report.which),
              {absl::StrCat(count, count == 1 ? " record" : " records", " of ", report.cache, ", ",
                            DateText(report.made_s))},
              sections);
}

}  // namespace coconet
