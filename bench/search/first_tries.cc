// What a search on GPUs does before it tries anything, and what it tries first: seconds to derive,
// enumerate, expect and lower, configs a schedule, and bytes in flight. Needs no GPU: the machine
// is half an H200 for each of two ranks.

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "autotune/prior/schedule_prior.h"
#include "autotune/search/kept_variants.h"
#include "autotune/search/variants.h"
#include "autotune/store/phases.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "jit/config/config.h"
#include "jit/lower/lower.h"

ABSL_FLAG(std::string, case, "", "workloads, comma-separated; default: all of one stage");
ABSL_FLAG(int64_t, n, int64_t{1} << 28, "elements of an optimizer's vector");
ABSL_FLAG(int, batch, 8,
          "variants that are lowered before the first is tried, besides the baseline");

namespace coconet::bench {
namespace {

constexpr ConfigSpace kHalfAnH200 = {
    .ranks = 2, .multiprocessors = 66, .gemm_candidates = 3, .library = false, .bulk = true};
constexpr double kLargeLaunch = 64e6, kWantedInFlight = 64 << 10;

std::vector<Column> Columns() {
  return ColumnsOf(
      "case, schedules|%.0f, variants|%.0f, kept|%.0f, a schedule|%.0f|configs_of_schedule, "
      "derive s|%.2f, enumerate s|%.2f, lower s|%.2f, first s|%.2f|before_first_s, "
      "large launches|%.0f, short of 64 KiB|%.0f|short, least KiB|*, limit, met|result|bars_met",
      {{"least KiB", [](const Row& row) {
          return absl::StrFormat("%.0f", row.Number("least_in_flight") / 1024);
        }}});
}

absl::StatusOr<Graph> ProgramOf(const WorkloadInfo& workload) {
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(workload.name, {.dtype = DType::kBF16}));
  Sizes sizes = workload.presets[0].sizes;
  if (workload.optimizer) sizes = {{"N", absl::GetFlag(FLAGS_n)}};
  if (workload.name == "decode") sizes.insert_or_assign("H", 4096);
  ASSIGN_OR_RETURN(const Graph bound, BindSizes(symbolic, sizes));
  RETURN_IF_ERROR(CheckRuns(bound, kHalfAnH200.ranks));
  ASSIGN_OR_RETURN(Schedule schedule, InitialSchedule(bound));
  return schedule.graph();
}

/// The variant of each schedule that is expected to be its fastest: which is tried first.
std::vector<int> FirstOfSchedules(const VariantSet& set) {
  std::vector<int> first;
  for (int v = 0; v < static_cast<int>(set.variants.size()); ++v) {
    const bool same = v > 0 && SameSchedule(set.variants[v - 1], set.variants[v]);
    if (!same)
      first.push_back(v);
    else if (set.variants[v].prior_us < set.variants[first.back()].prior_us)
      first.back() = v;
  }
  return first;
}

/// Bytes in flight of the large launches of each schedule at the shape that is tried first.
void AddInFlight(const VariantSet& set, const std::vector<int>& first, Row& row) {
  int64_t large = 0, fewer = 0;
  double least = 0;
  std::string limit;
  for (int v : first) {
    const Variant& variant = set.variants[v];
    const SchedulePrior prior(variant.schedule, kHalfAnH200);
    for (const LaunchTraits& launch : prior.launches()) {
      const bool by_library =
          launch.kind == LaunchTraits::Kind::kProduct ||
          (launch.kind == LaunchTraits::Kind::kCollective &&
           LeftToLibrary(variant.config.protocol, kHalfAnH200.nodes) != LibraryDoes::kNone);
      if (by_library || launch.read + launch.written < kLargeLaunch) continue;
      const BytesInFlight in_flight = InFlightOf(launch, variant.config, prior.rates());
      ++large;
      fewer += in_flight.bytes < kWantedInFlight ? 1 : 0;
      if (least != 0 && in_flight.bytes >= least) continue;
      least = in_flight.bytes;
      limit = absl::StrCat(in_flight.limit, ": ", Describe(variant.schedule), " | ",
                           Text(variant.config));
    }
  }
  row.Set("large_launches", large).Set("short", fewer).Set("least_in_flight", least);
  row.Set("limit", limit);
}

absl::StatusOr<Row> Measure(const WorkloadInfo& workload) {
  ASSIGN_OR_RETURN(const Graph program, ProgramOf(workload));
  Phases phases;
  VariantSet set;
  size_t variants = 0;
  int64_t schedules = 0;
  std::vector<int> first;
  {
    const Phases::Part part(&phases, Phase::kEnumerate);
    ASSIGN_OR_RETURN(set,
                     EnumerateVariants(program, kHalfAnH200, nullptr, nullptr, false, {}, &phases));
    ExpectTimes(kHalfAnH200, set);
    variants = set.variants.size();
    std::vector<int> none;
    const std::vector<int> kept = KeptVariants(kHalfAnH200, set, {&set.baseline, 1});
    set = OnlyKept(std::move(set), kept, none);
    first = FirstOfSchedules(set);
    schedules = static_cast<int64_t>(first.size());
  }
  std::vector<int> tried = first;
  absl::c_sort(tried,
               [&](int a, int b) { return set.variants[a].prior_us < set.variants[b].prior_us; });
  tried.resize(std::min(tried.size(), static_cast<size_t>(absl::GetFlag(FLAGS_batch))));
  tried.push_back(set.baseline);
  {
    const Phases::Part part(&phases, Phase::kLower);
    for (int v : tried) RETURN_IF_ERROR(LowerVariant(set.variants[v], kHalfAnH200.ranks).status());
  }
  int64_t most = 0, count = 0;
  for (size_t v = 0; v < set.variants.size(); ++v) {
    const bool same = v > 0 && SameSchedule(set.variants[v - 1], set.variants[v]);
    count = same ? count + 1 : 1;
    most = std::max(most, count);
  }
  const PhaseSeconds seconds = phases.Seconds();
  const auto of = [&](Phase phase) { return seconds[static_cast<size_t>(phase)]; };
  Row row;
  row.Set("schedules", schedules)
      .Set("variants", static_cast<int64_t>(variants))
      .Set("kept", static_cast<int64_t>(set.variants.size()))
      .Set("configs_of_schedule", most)
      .Set("derive_s", of(Phase::kDerive))
      .Set("enumerate_s", of(Phase::kEnumerate))
      .Set("lower_s", of(Phase::kLower))
      .Set("before_first_s", of(Phase::kDerive) + of(Phase::kEnumerate) + of(Phase::kLower));
  AddInFlight(set, first, row);
  const Bar bars[] = {{"before_first_s", Bar::Side::kAtMost, 3},
                      {"configs_of_schedule", Bar::Side::kAtMost, 8}};
  row.SetBars(bars);
  row.Set("bars_met", MetOf(row));
  return row;
}

absl::Status RunAll() {
  const std::vector<std::string> names =
      absl::StrSplit(absl::GetFlag(FLAGS_case), ',', absl::SkipEmpty());
  std::vector<Row> rows;
  for (const WorkloadInfo& workload : Workloads()) {
    if (names.empty() ? workload.name == "pipeline" : !absl::c_linear_search(names, workload.name))
      continue;
    absl::StatusOr<Row> row = Measure(workload);
    Row& added = rows.emplace_back(row.ok() ? *std::move(row) : Row());
    added.Set("case", std::string(workload.name)).Set("load", LoadAverage());
    AddMachine(added);
    if (!row.ok()) added.Set("error", std::string(row.status().message()));
  }
  if (rows.empty()) return absl::InvalidArgumentError("--case: no such workload");
  return Show(rows, Columns());
}

const Registered kBenchmark(
    {.name = "first_tries",
     .usage = "measures what a search on GPUs does before it tries anything, and what it tries "
              "first; see bench/README.md\n\n  first_tries [--case=decode] [--json=FILE]",
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
