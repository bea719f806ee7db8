#include "bench/search/subjects.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "autotune/session/key.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/workload.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/schedule/schedule.h"

namespace coconet::bench {

ConfigSpace SpaceHere(const Rank& rank) {
  const std::vector<Topology> topologies(rank.size(), rank.topology());
  return SpaceOf(topologies, rank.mesh(), SumOrder::kAny);
}

absl::StatusOr<Graph> ProgramOf(const WorkloadInfo& workload, DType dtype, int64_t n, int ranks) {
  const Sizes sizes = workload.optimizer ? Sizes{{"N", n}} : workload.presets[0].sizes;
  ASSIGN_OR_RETURN(const Graph bound, BoundWorkload(workload.name, dtype, sizes));
  RETURN_IF_ERROR(CheckRuns(bound, ranks));
  ASSIGN_OR_RETURN(const Schedule schedule, InitialSchedule(bound));
  return schedule.graph();
}

std::vector<int> SchedulesOf(const VariantSet& set) {
  std::vector<int> schedules;
  for (size_t v = 0; v < set.variants.size(); ++v) {
    const bool same = v == 0 || SameSchedule(set.variants[v - 1], set.variants[v]);
    schedules.push_back(v == 0 ? 0 : schedules.back() + (same ? 0 : 1));
  }
  return schedules;
}

int64_t MostOfSchedule(const VariantSet& set, const std::vector<int>& variants) {
  const std::vector<int> schedules = SchedulesOf(set);
  std::map<int, int64_t> counts;
  for (int v : variants) ++counts[schedules[v]];
  int64_t most = 0;
  for (const auto& [schedule, count] : counts) most = std::max(most, count);
  return most;
}

absl::StatusOr<Run> MakeRunner(Rank& rank, const Graph& program, const VariantSet& set,
                               uint64_t seed) {
  Run run;
  ASSIGN_OR_RETURN(run.binaries, Binaries::Open(rank, {.cache_dir = GetEnv().cache_dir}));
  ASSIGN_OR_RETURN(run.runner,
                   RankRunner::Create(rank, program, set.variants,
                                      {.seed = seed, .binaries = run.binaries.get(), .watch = {}}));
  return run;
}

absl::StatusOr<std::vector<Row>> RowsOfWorkloads(
    const std::vector<std::string>& names,
    const std::function<absl::StatusOr<std::vector<Row>>(const WorkloadInfo&)>& measure) {
  ASSIGN_OR_RETURN(const std::vector<WorkloadInfo> workloads, WorkloadsOf(names));
  const double begin_s = SecondsNow();
  std::vector<Row> rows;
  for (const WorkloadInfo& workload : workloads) {
    absl::FPrintF(stderr, "[%4.0f s] %s\n", SecondsNow() - begin_s, workload.name);
    absl::StatusOr<std::vector<Row>> measured = measure(workload);
    if (!measured.ok()) measured = {Row().Set("error", std::string(measured.status().message()))};
    for (Row& row : *measured) {
      row.Set("case", std::string(workload.name)).Set("load", LoadAverage());
      AddMachine(row);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace coconet::bench
