#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/runner/binaries.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/search/variants.h"
#include "bench/harness/row.h"
#include "coconet/workloads/workloads.h"
#include "jit/config/config.h"
#include "runtime/rank.h"

namespace coconet::bench {

// What the searches of this room are made over.

/// Half an H200 for each of two ranks.
inline constexpr ConfigSpace kHalfAnH200 = {
    .ranks = 2, .multiprocessors = 66, .gemm_candidates = 3, .library = false, .bulk = true};
/// The space of the ranks of a world of one machine.
ConfigSpace SpaceHere(const Rank& rank);

/// The plain program of a workload for so many ranks: of its first preset's sizes, or, if it is an
/// optimizer, over a vector of `n` elements.
absl::StatusOr<Graph> ProgramOf(const WorkloadInfo& workload, DType dtype, int64_t n, int ranks);

/// The number of the schedule of each variant.
std::vector<int> SchedulesOf(const VariantSet& set);
/// How many of these variants the schedule has that has most of them.
int64_t MostOfSchedule(const VariantSet& set, const std::vector<int>& variants);

/// A runner, and the binaries that it compiles.
struct Run {
  std::unique_ptr<Binaries> binaries;
  std::unique_ptr<RankRunner> runner;
};
absl::StatusOr<Run> MakeRunner(Rank& rank, const Graph& program, const VariantSet& set,
                               uint64_t seed);

/// The rows that `measure` returns for each workload of these names (WorkloadsOf), with "case",
/// "load" and AddMachine's fields. If it fails, the workload has a row with the "error".
absl::StatusOr<std::vector<Row>> RowsOfWorkloads(
    const std::vector<std::string>& names,
    const std::function<absl::StatusOr<std::vector<Row>>(const WorkloadInfo&)>& measure);

/// What ranks exchange in a world of one.
class Solo final : public Exchange {
 public:
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override {
    return std::vector<std::string>{std::string(mine)};
  }
};

}  // namespace coconet::bench
