// What the variants that a search keeps by their expected times are worth: the best of them is
// compared with the best of all of the fastest schedules, and of others at random.

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
#include "autotune/search/kept_variants.h"
#include "autotune/search/variants.h"
#include "autotune/session/key.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/search/screening.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "runtime/world.h"

ABSL_FLAG(std::string, case, "", "workloads, comma-separated; default: all of one stage");
ABSL_FLAG(int, ranks, 2, "ranks, threads of this process");
ABSL_FLAG(int, most, 48,
          "of the variants that are kept, how many are timed: those expected to be fastest");
ABSL_FLAG(int, others, 16,
          "variants at random that are timed beside those and all of the fastest schedules");
ABSL_FLAG(int64_t, n, 1 << 18, "elements of an optimizer's vector");
ABSL_FLAG(bool, list, false, "print all variants with their times");

namespace coconet::bench {
namespace {

constexpr double kNear = 1.03;

std::vector<Column> Columns() {
  return ColumnsOf(
      "case, timed|%.0f|variants, kept|%.0f, a schedule|%.0f|kept_of_schedule, of all|%.0f|all, "
      "best|time, kept / best|ratio|ratio, best config, met|result|bars_met");
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

std::string WordsOf(const VariantSet& set, int variant) {
  return absl::StrCat(Describe(set.variants[variant]).schedule, " | ",
                      Text(set.variants[variant].config));
}

Row RowOf(const Screened& screened, const VariantSet& set, const std::vector<int>& kept) {
  for (size_t v = 0; absl::GetFlag(FLAGS_list) && v < set.variants.size(); ++v) {
    if (screened.us[v] == 0) continue;
    std::printf("%s | %.2f us, expected %.2f%s\n", WordsOf(set, static_cast<int>(v)).c_str(),
                screened.us[v], set.variants[v].prior_us,
                absl::c_binary_search(kept, static_cast<int>(v)) ? ", kept" : "");
  }
  Row row;
  row.Set("variants", int64_t{screened.timed})
      .Set("kept", static_cast<int64_t>(kept.size()))
      .Set("kept_of_schedule", MostOfSchedule(set, kept))
      .Set("all", static_cast<int64_t>(set.variants.size()))
      .Set("best_us", screened.us[screened.best])
      .Set("best_config", WordsOf(set, screened.best))
      .Set("best_of_kept", WordsOf(set, screened.best_of_part))
      .Set("ratio", screened.ratio)
      .Set("near", int64_t{screened.ratio <= kNear});
  return row;
}

/// The kept variants that are expected to be the fastest.
std::vector<int> Fastest(const VariantSet& set, std::vector<int> kept, int most) {
  absl::c_stable_sort(
      kept, [&](int a, int b) { return set.variants[a].prior_us < set.variants[b].prior_us; });
  kept.resize(std::min(kept.size(), static_cast<size_t>(most)));
  return kept;
}

absl::StatusOr<Row> Measure(const WorkloadInfo& workload) {
  const int ranks = absl::GetFlag(FLAGS_ranks);
  ASSIGN_OR_RETURN(const Graph program, ProgramOf(workload, ranks));
  Row row;
  RETURN_IF_ERROR(RunWorld({.ranks = ranks}, [&](Rank& rank) -> absl::Status {
    const std::vector<Topology> topologies(ranks, rank.topology());
    const ConfigSpace space = SpaceOf(topologies, rank.mesh(), SumOrder::kAny);
    ASSIGN_OR_RETURN(VariantSet set, EnumerateVariants(program, space));
    ExpectTimes(space, set);
    const std::vector<int> kept = KeptVariants(space, set, {&set.baseline, 1});
    const int most = IsQuick() ? 4 : absl::GetFlag(FLAGS_most),
              others = IsQuick() ? 2 : absl::GetFlag(FLAGS_others);
    ASSIGN_OR_RETURN(const Screened screened,
                     Screen(rank, program, set, Fastest(set, kept, most), others));
    if (rank.rank() == 0) row = RowOf(screened, set, kept);
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

const Registered kBenchmark(
    {.name = "kept",
     .usage =
         "compares the best of the variants that a search keeps with the best of all; see "
         "bench/README.md\n\n  kept [--case=adam] [--most=48] [--others=16] [--list] [--json=FILE]",
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
