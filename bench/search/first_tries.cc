// What a search on GPUs does before it tries anything, and what it tries first: seconds to derive,
// enumerate, expect and lower, configs a schedule, and bytes in flight. Needs no GPU: the machine
// is half an H200 for each of two ranks.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/prior/schedule_prior.h"
#include "autotune/search/kept_variants.h"
#include "autotune/store/phases.h"
#include "bench/harness/user.h"
#include "bench/search/subjects.h"
#include "coconet/base/status.h"
#include "coconet/schedule/describe.h"

ABSL_FLAG(std::vector<std::string>, case, {},
          "workloads, comma-separated; default: all of one stage");
ABSL_FLAG(int64_t, n, int64_t{1} << 28, "elements of an optimizer's vector");
ABSL_FLAG(int, batch, 8,
          "variants that are lowered before the first is tried, besides the baseline");

namespace coconet::bench {
namespace {

constexpr double kLargeLaunch = 64e6, kWantedInFlight = 64 << 10;

/// The variant of each schedule that is expected to be its fastest, which is tried first.
std::vector<int> FirstOfSchedules(const VariantSet& set) {
  const std::vector<int> schedules = SchedulesOf(set);
  std::vector<int> first;
  for (int v = 0; v < static_cast<int>(schedules.size()); ++v) {
    if (static_cast<int>(first.size()) == schedules[v]) first.push_back(v);
    if (set.variants[v].prior_us < set.variants[first.back()].prior_us) first.back() = v;
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

absl::StatusOr<std::vector<Row>> Measure(WorkloadInfo workload) {
  if (workload.name == "decode") workload.presets[0].sizes.insert_or_assign("H", 4096);
  ASSIGN_OR_RETURN(const Graph program,
                   ProgramOf(workload, DType::kBF16, absl::GetFlag(FLAGS_n), kHalfAnH200.ranks));
  Phases phases;
  VariantSet set;
  Row row;
  std::vector<int> first;
  {
    const Phases::Part part(&phases, Phase::kEnumerate);
    ASSIGN_OR_RETURN(set,
                     EnumerateVariants(program, kHalfAnH200, nullptr, nullptr, false, {}, &phases));
    ExpectTimes(kHalfAnH200, set);
    const auto variants = static_cast<int64_t>(set.variants.size());
    std::vector<int> none;
    const std::vector<int> kept = KeptVariants(kHalfAnH200, set, {&set.baseline, 1});
    const int64_t most = MostOfSchedule(set, kept);
    set = OnlyKept(std::move(set), kept, none);
    first = FirstOfSchedules(set);
    row.Set("schedules", static_cast<int64_t>(first.size()))
        .Set("variants", variants)
        .Set("kept", static_cast<int64_t>(kept.size()))
        .Set("configs_of_schedule", most);
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
  const PhaseSeconds seconds = phases.Seconds();
  double before_first_s = 0;
  for (const Phase phase : {Phase::kDerive, Phase::kEnumerate, Phase::kLower}) {
    before_first_s += seconds[static_cast<size_t>(phase)];
    row.Set(absl::StrCat(Name(phase), "_s"), seconds[static_cast<size_t>(phase)]);
  }
  row.Set("before_first_s", before_first_s);
  AddInFlight(set, first, row);
  row.SetBars(BarsOf("before_first_s <= 3, configs_of_schedule <= 8"));
  return {{row.Set("bars_met", MetOf(row))}};
}

absl::Status RunAll() {
  ASSIGN_OR_RETURN(const std::vector<Row> rows,
                   RowsOfWorkloads(absl::GetFlag(FLAGS_case), Measure));
  return Show(
      rows,
      ColumnsOf(
          "case, schedules|%.0f, variants|%.0f, kept|%.0f, a schedule|%.0f|configs_of_schedule, "
          "derive s|%.2f, enumerate s|%.2f, lower s|%.2f, first s|%.2f|before_first_s, "
          "large launches|%.0f, short of 64 KiB|%.0f|short, least KiB|*, limit, "
          "met|result|bars_met",
          {{"least KiB", [](const Row& row) {
              return absl::StrFormat("%.0f", row.Number("least_in_flight") / 1024);
            }}}));
}

const Registered kBenchmark(
    {.name = "first_tries",
     .purpose =
         "measures what a search on GPUs does before it tries anything, and what it tries first",
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
