#include "bench/hlo/hlo_plans.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autotune/cost/nominal_cost_model.h"
#include "autotune/planning/plan_iteration.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_import.h"
#include "coconet/hlo/text/hlo_parser.h"

namespace coconet::bench {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Forgets the most memory that this process had so far.
void ResetPeakMemory() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// MiB since then.
double PeakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar("\t "), absl::SkipEmpty());
    double kib = 0;
    if (words.size() > 1 && words[0] == "VmHWM:" && absl::SimpleAtod(words[1], &kib))
      return kib / 1024;
  }
  return 0;
}

/// The share of a program's operations, convolutions apart, that can be executed.
double ExecutableShare(const ImportedHlo& imported) {
  int64_t convolutions = 0, opaque = 0;
  for (const auto& [what, count] : imported.opaque)
    (absl::StartsWith(what, "convolution") ? convolutions : opaque) += count;
  return 1 - static_cast<double>(opaque) / static_cast<double>(imported.operations - convolutions);
}

}  // namespace

absl::Status MeasurePlan(const std::string& file, double seconds, Row& row) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat(file, ": cannot be read"));
  std::string text((std::istreambuf_iterator<char>(in)), {});
  ResetPeakMemory();
  const double begin = Now();
  ASSIGN_OR_RETURN(const HloModule module, ParseHlo(std::move(text)));
  ASSIGN_OR_RETURN(const ImportedHlo imported, ImportHlo(module, {.for_planning = true}));
  row.Set("import_s", Now() - begin).Set("ranks", imported.partitions);
  row.Set("instructions", imported.operations).Set("executable", ExecutableShare(imported));
  row.Set("opaque", absl::StrJoin(imported.opaque, ", ", [](std::string* out, const auto& of) {
            absl::StrAppend(out, of.second, " x ", of.first);
          }));
  ASSIGN_OR_RETURN(NominalRates rates, NominalRatesOf("h100"));
  rates.ranks = static_cast<int>(imported.partitions);
  rates.SetLink(100);
  const NominalCostModel model(rates);
  ASSIGN_OR_RETURN(
      const PlannedIteration planned,
      PlanIteration(imported.program, Target(rates.ranks), model, {.seconds = seconds}));
  row.Set("seconds", Now() - begin).Set("memory_mib", PeakMemory());
  row.Set("operations", int64_t{planned.operations}).Set("launches", int64_t{planned.launches});
  row.Set("evaluations", planned.evaluations).Set("us", planned.found.us);
  row.Set("bound_us", planned.found.bound_us).Set("xla_us", planned.combined.us);
  row.Set("over_bound", planned.found.us / planned.found.bound_us);
  row.Set("over_xla", planned.found.us / planned.combined.us);
  return absl::OkStatus();
}

}  // namespace coconet::bench
