// Compares searches of the tuner with the exhaustive one: what they pick, and how long they
// measure.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/measure/statistics.h"
#include "autotune/session/key.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/search/recording.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "runtime/world.h"

ABSL_FLAG(std::string, case, "", "workloads, comma-separated; default: all");
ABSL_FLAG(int, ranks, 2, "ranks, threads of this process");
ABSL_FLAG(int, replays, 20, "replays of the recorded rounds");
ABSL_FLAG(int, live, 0, "searches on the ranks, beside the replays");
ABSL_FLAG(int, most, 250, "most variants of a workload; a larger space is sampled");
ABSL_FLAG(int64_t, n, 1 << 18, "elements of an optimizer's vector");

namespace coconet::bench {
namespace {

constexpr double kNear = 1.03;

std::vector<Column> Columns() {
  return ColumnsOf(
      "case, search, variants|%.0f, tried|%.0f, best|time, within 3 %|*, worst|%.3f, "
      "measuring|100*%.0f%%|share, exhaustive|%.1f s|exhaustive_s, met|result|bars_met",
      {{"within 3 %", [](const Row& row) {
          return absl::StrFormat("%.0f of %.0f", row.Number("near"), row.Number("picks"));
        }}});
}

Row RowOf(const Recording& recording, const std::vector<Pick>& picks) {
  double best_us = 0;
  for (size_t v = 0; v < recording.level_us.size(); ++v) {
    if (recording.rounds[v].empty()) continue;
    if (best_us == 0 || recording.level_us[v] < best_us) best_us = recording.level_us[v];
  }
  std::vector<double> shares, tried;
  int64_t near = 0;
  double worst = 0;
  for (const Pick& pick : picks) {
    const double ratio = recording.level_us[pick.variant] / best_us;
    near += ratio <= kNear ? 1 : 0;
    worst = std::max(worst, ratio);
    shares.push_back(pick.measuring_s / recording.measuring_s);
    tried.push_back(pick.tried);
  }
  Row row;
  row.Set("variants", static_cast<int64_t>(recording.entrants.size()))
      .Set("tried", Median(tried))
      .Set("best_us", best_us)
      .Set("picks", static_cast<int64_t>(picks.size()))
      .Set("near", near)
      .Set("near_share", static_cast<double>(near) / static_cast<double>(picks.size()))
      .Set("worst", worst)
      .Set("share", Median(shares))
      .Set("share_most", *std::max_element(shares.begin(), shares.end()))
      .Set("exhaustive_s", recording.measuring_s);
  const Bar bars[] = {{"near_share", Bar::Side::kAtLeast, 0.95},
                      {"share", Bar::Side::kAtMost, 0.25}};
  row.SetBars(bars);
  row.Set("bars_met", MetOf(row));
  return row;
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

absl::Status Measure(const WorkloadInfo& workload, std::vector<Row>& rows) {
  const int ranks = absl::GetFlag(FLAGS_ranks);
  const double budget_s = TuningBudget(570, 60);
  const int most = IsQuick() ? 12 : absl::GetFlag(FLAGS_most);
  ASSIGN_OR_RETURN(const Graph program, ProgramOf(workload, ranks));
  Recording recording;
  std::vector<Pick> live;
  RETURN_IF_ERROR(RunWorld({.ranks = ranks}, [&](Rank& rank) -> absl::Status {
    const std::vector<Topology> topologies(ranks, rank.topology());
    ASSIGN_OR_RETURN(const VariantSet set,
                     VariantsOf(program, SpaceOf(topologies, rank.mesh(), SumOrder::kAny), most));
    RETURN_IF_ERROR(Record(rank, program, set, budget_s, recording));
    for (int i = 0; i < absl::GetFlag(FLAGS_live); ++i) {
      ASSIGN_OR_RETURN(const Pick pick,
                       SearchLive(rank, program, set, SearchKind::kAuto, 100 + i, budget_s));
      if (rank.rank() == 0) live.push_back(pick);
    }
    return absl::OkStatus();
  }));
  const auto add = [&](absl::string_view search, const std::vector<Pick>& picks) {
    Row row = RowOf(recording, picks);
    row.Set("case", std::string(workload.name))
        .Set("ranks", static_cast<int64_t>(ranks))
        .Set("search", std::string(search))
        .Set("load", LoadAverage());
    AddMachine(row);
    rows.push_back(std::move(row));
  };
  for (SearchKind kind : {SearchKind::kAuto, SearchKind::kRacing, SearchKind::kEvolution}) {
    std::vector<Pick> picks;
    for (int replay = 0; replay < absl::GetFlag(FLAGS_replays); ++replay) {
      ASSIGN_OR_RETURN(const Pick pick, Replay(recording, kind, replay + 1));
      picks.push_back(pick);
    }
    add(absl::StrCat(Name(kind), ", replayed"), picks);
  }
  if (!live.empty()) add("auto, live", live);
  return absl::OkStatus();
}

/// The workloads that --case names; all but those of several stages where it names none.
absl::StatusOr<std::vector<WorkloadInfo>> Wanted() {
  std::vector<WorkloadInfo> known;
  for (const WorkloadInfo& workload : Workloads()) {
    if (workload.name != "pipeline") known.push_back(workload);
  }
  const std::vector<std::string> names =
      absl::StrSplit(absl::GetFlag(FLAGS_case), ',', absl::SkipEmpty());
  if (names.empty()) return known;
  std::vector<WorkloadInfo> wanted;
  for (const std::string& name : names) {
    const auto at = absl::c_find_if(known, [&](const WorkloadInfo& w) { return w.name == name; });
    if (at == known.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--case: no workload \"", name, "\"; there are ",
                       absl::StrJoin(known, ", ", [](std::string* out, const WorkloadInfo& w) {
                         absl::StrAppend(out, w.name);
                       })));
    }
    wanted.push_back(*at);
  }
  return wanted;
}

absl::Status RunAll() {
  const absl::Time begin = absl::Now();
  ASSIGN_OR_RETURN(const std::vector<WorkloadInfo> workloads, Wanted());
  std::vector<Row> rows;
  for (const WorkloadInfo& workload : workloads) {
    absl::FPrintF(stderr, "[%4.0f s] %s\n", absl::ToDoubleSeconds(absl::Now() - begin),
                  workload.name);
    if (absl::Status status = Measure(workload, rows); !status.ok()) {
      Row row;
      row.Set("case", std::string(workload.name)).Set("error", std::string(status.message()));
      rows.push_back(std::move(row));
    }
  }
  return Show(rows, Columns());
}

const Registered kBenchmark(
    {.name = "search",
     .usage = "compares the tuner's searches with the exhaustive one; see bench/README.md\n\n  "
              "search [--case=adam] [--replays=20] [--live=3] [--most=250] [--json=FILE]",
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
