// Writes pages to a folder: write_samples FOLDER.

#include <cstdio>
#include <fstream>
#include <string>

#include "autotune/report/testing/sample_report.h"

namespace coconet {
namespace {

bool Write(const std::string& folder, const std::string& name, const std::string& page) {
  std::ofstream out(folder + "/" + name);
  out << page;
  return static_cast<bool>(out.flush());
}

bool WriteAll(const std::string& folder) {
  const Report full = SampleReport();
  Report one{.cache = "tuning.db", .which = "adam", .records = {full.records[2]}};
  PlannedIteration hostile = SamplePlan();
  for (Task& task : hostile.tasks.tasks) task.layer = kHostileName;
  return Write(folder, "full.html", ReportHtml(full)) &&
         Write(folder, "one.html", ReportHtml(one)) &&
         Write(folder, "empty.html", ReportHtml({.cache = "tuning.db", .which = "all"})) &&
         Write(folder, "plan.html",
               PlanHtml("A plan of gpt_step", {"4 ranks; nothing was run"}, SamplePlan())) &&
         Write(folder, "hostile_plan.html", PlanHtml(kHostileName, {kHostileName}, hostile));
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  if (argc != 2 || !coconet::WriteAll(argv[1])) {
    std::fprintf(stderr, "write_samples: want a folder that can be written\n");
    return 1;
  }
  return 0;
}
