#include "bench/compiler/derivation.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autotune/measure/statistics.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/schedule.h"

namespace coconet::bench {
namespace {

std::string SizeText(const BoundSize& size) {
  if (!size.is_list) return CountText(size.sizes[0]);
  const int64_t elements = std::accumulate(size.sizes.begin(), size.sizes.end(), int64_t{0});
  return absl::StrCat(size.sizes.size(), " tensors, ", CountText(elements));
}

std::string SizesText(const Sizes& sizes) {
  return absl::StrJoin(sizes, " ", [](std::string* out, const auto& size) {
    absl::StrAppend(out, size.first, "=", SizeText(size.second));
  });
}

}  // namespace

absl::StatusOr<Row> MeasureDerivation(const WorkloadInfo& workload, DType dtype, int rounds,
                                      bool by_node) {
  using Clock = std::chrono::steady_clock;
  const Sizes& sizes = workload.presets[0].sizes;
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(workload.name, {.dtype = dtype}));
  ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, sizes));
  std::vector<Schedule> schedules;
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point begin = Clock::now();
    ASSIGN_OR_RETURN(schedules, Derive(program, {.by_node = by_node}));
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  const Timing timing = Summarize(times);
  const auto graphs = std::count_if(schedules.begin(), schedules.end(),
                                    [](const Schedule& s) { return s.kernels().empty(); });
  Row row;
  row.Set("case", std::string(workload.name))
      .Set("dtype", std::string(Name(dtype)))
      .Set("sizes", SizesText(sizes));
  row.Set("nodes", std::string(by_node ? "several" : "one"));
  row.Set("schedules", static_cast<int64_t>(schedules.size()))
      .Set("graphs", static_cast<int64_t>(graphs));
  row.Set("ours_us", timing.median_us)
      .Set("ours_low_us", timing.low_us)
      .Set("ours_high_us", timing.high_us);
  row.Set("spread", Noise(timing)).Set("rounds", static_cast<int64_t>(rounds));
  return row;
}

}  // namespace coconet::bench
