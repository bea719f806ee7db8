#include "autotune/command/sweep_plan.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/command/paths.h"
#include "autotune/command/sweep_report.h"
#include "autotune/cost/nominal_cost_model.h"
#include "autotune/planning/combined_plan.h"
#include "autotune/planning/plan_iteration.h"
#include "autotune/report/report.h"
#include "autotune/simulation/timeline.h"
#include "coconet/base/status.h"
#include "coconet/base/table.h"
#include "coconet/ir/lists.h"
#include "coconet/language/language.h"

namespace coconet {
namespace {

constexpr double kMostSeconds = 10;  // of the search
constexpr int kColumns = 80;         // of the timeline

std::string BytesText(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.3g %s", bytes, kUnits[unit]);
}

TableCells RowOf(absl::string_view what, const PlanFigures& figures, double us, double exposed_us) {
  return {std::string(what),
          TimeText(us),
          absl::StrFormat("%.4f", us / figures.bound_us),
          absl::StrCat(figures.kernels),
          absl::StrCat(figures.collectives),
          TimeText(figures.computation_us),
          TimeText(figures.communication_us),
          TimeText(exposed_us),
          BytesText(static_cast<double>(figures.peak_bytes))};
}

std::string PlansTable(const PlannedIteration& planned) {
  const PlanFigures &found = planned.found, &combined = planned.combined;
  const double in_turns = combined.computation_us + combined.communication_us;
  return TextTable(
      {{"plan"},
       {"time", true},
       {"over bound", true},
       {"kernels", true},
       {"collectives", true},
       {"computes", true},
       {"communicates", true},
       {"exposed", true},
       {"peak memory", true}},
      {RowOf("found", found, found.us, found.exposed_us),
       RowOf("as written, combined to 30 MiB", combined, combined.us, combined.exposed_us),
       RowOf("the same, nothing overlapped", combined, in_turns, combined.communication_us)});
}

absl::Status WriteTrace(const std::string& file, const PlannedIteration& planned) {
  if (file.empty()) return absl::OkStatus();
  std::ofstream out(file);
  out << ChromeTrace(planned.tasks, planned.timeline).text;
  out.close();
  return out ? absl::OkStatus()
             : absl::FailedPreconditionError(absl::StrCat("--trace: cannot write ", file));
}

absl::Status WriteReport(const std::string& file, const std::string& title,
                         absl::Span<const std::string> lines, const PlannedIteration& planned) {
  if (file.empty()) return absl::OkStatus();
  std::ofstream out(file);
  out << PlanHtml(title, lines, planned);
  out.close();
  return out ? absl::OkStatus()
             : absl::FailedPreconditionError(absl::StrCat("--report: cannot write ", file));
}

}  // namespace

absl::StatusOr<std::string> PlanText(const SweepFlags& flags, const Graph& program,
                                     const std::function<void(absl::string_view)>& progress,
                                     const std::function<bool()>& interrupted) {
  RETURN_IF_ERROR(CheckWritable("--trace", flags.trace));
  RETURN_IF_ERROR(CheckWritable("--report", flags.report));
  ASSIGN_OR_RETURN(NominalRates rates, NominalRatesOf(flags.device));
  const int all = flags.ranks > 0 ? flags.ranks : kDefaultRanks;
  if (all % flags.stages != 0)
    return absl::InvalidArgumentError(absl::StrCat("--stages: want stages of equally many of ", all,
                                                   " ranks, have ", flags.stages));
  rates.ranks = all / flags.stages;
  rates.SetLink(flags.link_gbits);
  const NominalCostModel model(rates);
  ASSIGN_OR_RETURN(const Graph bound, BindSizes(program, flags.sizes));
  const Graph written = Expand(bound);  // without lists

  const double seconds = std::min(kMostSeconds, flags.budget_s);
  ASSIGN_OR_RETURN(
      const PlannedIteration planned,
      PlanIteration(written, Target(rates.ranks), model,
                    {.seconds = seconds,
                     .go_on = [&] { return !interrupted(); },
                     .progress =
                         [&](const PlanProgress& p) {
                           progress(absl::StrFormat(
                               "planning: %.0f s, %d plans, %s, %.2f%% over the bound", p.seconds,
                               p.evaluations, TimeText(p.us), 100 * p.gap()));
                         }}));
  RETURN_IF_ERROR(WriteTrace(flags.trace, planned));
  const std::string name =
      flags.is_file ? std::filesystem::path(flags.program).filename().string() : flags.program;
  const std::string planned_for =
      absl::StrCat(rates.ranks, rates.ranks == 1 ? " rank" : " ranks", ", planned for ",
                   flags.device, " and ", flags.link_gbits, " Gbit/s a rank; nothing was run");
  const std::string imported =
      flags.imported.empty() ? "" : absl::StrCat("imported: ", flags.imported);
  std::vector<std::string> lines = {planned_for};
  if (!imported.empty()) lines.push_back(imported);
  RETURN_IF_ERROR(WriteReport(flags.report, absl::StrCat("A plan of ", name), lines, planned));
  const PlanFigures& found = planned.found;
  return absl::StrCat(
      name, ", ", planned_for, "\n", imported, imported.empty() ? "" : "\n",
      "program: ", planned.operations, " operations in ", planned.launches, " launches; ",
      planned.evaluations, " plans simulated\n\n", PlansTable(planned),
      "\nbounds of the found plan: ", TimeText(found.bound_us), " by dependencies, ",
      TimeText(found.full_overlap_us()), " by full overlap; ",
      absl::StrFormat("%.2f%% over the bound, %.3fx as fast as combined\n\n",
                      100 * (found.us / found.bound_us - 1), planned.combined.us / found.us),
      LanesText(planned.tasks, planned.timeline, kColumns), "0 to ", TimeText(found.us),
      flags.trace.empty() ? "" : absl::StrCat("; trace in ", flags.trace),
      flags.report.empty() ? "" : absl::StrCat("; page in ", flags.report), "\n");
}

}  // namespace coconet
