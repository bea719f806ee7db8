// What the configs that a search keeps by their expected times are worth: all variants of each
// workload, or as many as fit, are timed in rounds, and the best of those that are kept is compared
// with the best of all.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/search/variants.h"
#include "autotune/session/key.h"
#include "bench/machine.h"
#include "bench/search/recording.h"
#include "bench/user.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "runtime/world.h"

ABSL_FLAG(std::string, case, "", "workloads, comma-separated; default: all of one stage");
ABSL_FLAG(int, ranks, 2, "ranks, threads of this process");
ABSL_FLAG(int, most, 100, "most variants of a workload: those that are kept, and others at random");
ABSL_FLAG(int64_t, n, 1 << 18, "elements of an optimizer's vector");
ABSL_FLAG(bool, list, false, "print all variants with their times");

namespace coconet::bench {
namespace {

constexpr double kNear = 1.03;

std::string CountOf(const Row& row, absl::string_view field) {
  return absl::StrFormat("%.0f", row.Number(field));
}

std::vector<Column> Columns() {
  return {{"case", [](const Row& row) { return TextOf(row, "case"); }},
          {"timed", [](const Row& row) { return CountOf(row, "variants"); }},
          {"kept", [](const Row& row) { return CountOf(row, "kept"); }},
          {"a schedule", [](const Row& row) { return CountOf(row, "kept_of_schedule"); }},
          {"of all", [](const Row& row) { return CountOf(row, "all"); }},
          {"best", [](const Row& row) { return TimeText(row.Number("best_us")); }},
          {"kept / best", [](const Row& row) { return RatioOf(row, "ratio"); }},
          {"best config", [](const Row& row) { return TextOf(row, "best_config"); }},
          {"met", [](const Row& row) { return TextOrError(row, "bars_met"); }}};
}

absl::StatusOr<Graph> ProgramOf(const WorkloadInfo& workload, int ranks) {
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(workload.name));
  Sizes sizes = workload.presets[0].sizes;
  if (workload.optimizer) sizes = {{"N", absl::GetFlag(FLAGS_n)}};
  ASSIGN_OR_RETURN(const Graph bound, BindSizes(symbolic, sizes));
  RETURN_IF_ERROR(CheckRuns(bound, ranks));
  ASSIGN_OR_RETURN(Schedule schedule, InitialSchedule(bound));
  return schedule.graph();
}

/// The most variants of a schedule among these.
int64_t MostOfSchedule(const VariantSet& set, const std::vector<int>& kept) {
  int64_t most = 0, count = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    const bool same = i > 0 && SameSchedule(set.variants[kept[i - 1]], set.variants[kept[i]]);
    count = same ? count + 1 : 1;
    most = std::max(most, count);
  }
  return most;
}

Row RowOf(const Recording& recording, const VariantSet& set, const std::vector<int>& kept) {
  double best_us = 0, best_kept_us = 0;
  std::string config;
  for (size_t v = 0; v < recording.level_us.size(); ++v) {
    if (recording.rounds[v].empty()) continue;
    const double us = recording.level_us[v];
    const bool is_kept = absl::c_binary_search(kept, static_cast<int>(v));
    if (is_kept && (best_kept_us == 0 || us < best_kept_us)) best_kept_us = us;
    if (best_us == 0 || us < best_us) {
      best_us = us;
      config =
          absl::StrCat(recording.entrants[v].result.schedule, " | ", Text(set.variants[v].config));
    }
    if (absl::GetFlag(FLAGS_list)) {
      std::printf("%s | %s | %.2f us, expected %.2f%s\n",
                  recording.entrants[v].result.schedule.c_str(),
                  Text(set.variants[v].config).c_str(), us, set.variants[v].prior_us,
                  is_kept ? ", kept" : "");
    }
  }
  Row row;
  row.Set("variants", static_cast<int64_t>(set.variants.size()))
      .Set("kept", static_cast<int64_t>(kept.size()))
      .Set("kept_of_schedule", MostOfSchedule(set, kept))
      .Set("all", static_cast<int64_t>(set.variants.size()) + set.left_out)
      .Set("best_us", best_us)
      .Set("best_config", config)
      .Set("ratio", best_kept_us / best_us)
      .Set("near", int64_t{best_kept_us / best_us <= kNear})
      .Set("measuring_s", recording.measuring_s);
  return row;
}

absl::StatusOr<Row> Measure(const WorkloadInfo& workload) {
  const int ranks = absl::GetFlag(FLAGS_ranks);
  const int most = IsQuick() ? 12 : absl::GetFlag(FLAGS_most);
  ASSIGN_OR_RETURN(const Graph program, ProgramOf(workload, ranks));
  Row row;
  RETURN_IF_ERROR(RunWorld({.ranks = ranks}, [&](Rank& rank) -> absl::Status {
    const std::vector<Topology> topologies(ranks, rank.topology());
    std::vector<int> kept;
    ASSIGN_OR_RETURN(
        const VariantSet set,
        VariantsOf(program, SpaceOf(topologies, rank.mesh(), SumOrder::kAny), most, &kept));
    Recording recording;
    RETURN_IF_ERROR(Record(rank, program, set, TuningBudget(570, 60), recording));
    if (rank.rank() == 0) row = RowOf(recording, set, kept);
    return absl::OkStatus();
  }));
  return row;
}

absl::Status RunAll() {
  const std::vector<std::string> names =
      absl::StrSplit(absl::GetFlag(FLAGS_case), ',', absl::SkipEmpty());
  std::vector<Row> rows;
  int64_t near = 0, measured = 0;
  for (const WorkloadInfo& workload : Workloads()) {
    if (names.empty() ? workload.name == "pipeline" : !absl::c_linear_search(names, workload.name))
      continue;
    absl::FPrintF(stderr, "%s\n", workload.name);
    absl::StatusOr<Row> row = Measure(workload);
    Row& added = rows.emplace_back(row.ok() ? *std::move(row) : Row());
    added.Set("case", std::string(workload.name)).Set("load", LoadAverage());
    AddMachine(added);
    if (!row.ok()) {
      added.Set("error", std::string(row.status().message()));
      continue;
    }
    near += static_cast<int64_t>(added.Number("near"));
    ++measured;
  }
  if (rows.empty()) return absl::InvalidArgumentError("--case: no such workload");
  Row& all = rows.emplace_back();
  all.Set("case", "all")
      .Set("near_share", static_cast<double>(near) / std::max<double>(measured, 1));
  const Bar bars[] = {{"near_share", Bar::Side::kAtLeast, 0.95}};
  all.SetBars(bars);
  all.Set("bars_met", MetOf(all));
  return Show(rows, Columns());
}

}  // namespace
}  // namespace coconet::bench

int main(int argc, char** argv) {
  using namespace coconet::bench;  // NOLINT: main
  return Main("kept",
              "compares the best of the variants that a search keeps with the best of all; see "
              "bench/README.md\n\n  kept [--case=adam] [--most=100] [--list] [--json=FILE]",
              RunAll, argc, argv);
}
