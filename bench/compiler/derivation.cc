#include "bench/compiler/derivation.h"

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/measure/statistics.h"
#include "bench/harness/rounds.h"
#include "bench/harness/workload.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/schedule.h"

namespace coconet::bench {
namespace {

std::string SizesText(const Sizes& sizes) {
  return absl::StrJoin(sizes, " ", [](std::string* out, const auto& size) {
    const std::vector<int64_t>& all = size.second.sizes;
    const std::string elements = CountText(absl::c_accumulate(all, int64_t{0}));
    const std::string tensors =
        size.second.is_list ? absl::StrCat(all.size(), " tensors, ") : std::string();
    absl::StrAppend(out, size.first, "=", tensors, elements);
  });
}

}  // namespace

absl::StatusOr<Row> MeasureDerivation(const WorkloadInfo& workload, DType dtype, int rounds,
                                      bool by_node) {
  const Sizes& sizes = workload.presets[0].sizes;
  ASSIGN_OR_RETURN(const Graph program, BoundWorkload(workload.name, dtype, sizes));
  std::vector<Schedule> schedules;
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const double begin_s = SecondsNow();
    ASSIGN_OR_RETURN(schedules, Derive(program, {.by_node = by_node}));
    times.push_back(1e6 * (SecondsNow() - begin_s));
  }
  const auto graphs =
      absl::c_count_if(schedules, [](const Schedule& s) { return s.kernels().empty(); });
  Row row;
  row.Set("case", std::string(workload.name))
      .Set("dtype", std::string(Name(dtype)))
      .Set("sizes", SizesText(sizes))
      .Set("nodes", by_node ? "several" : "one")
      .Set("schedules", static_cast<int64_t>(schedules.size()))
      .Set("graphs", int64_t{graphs});
  const Timing timing = Summarize(times);
  SetTime(row, "ours", timing);
  return row.Set("spread", Noise(timing)).Set("rounds", rounds);
}

}  // namespace coconet::bench
