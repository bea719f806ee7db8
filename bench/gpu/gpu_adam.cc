#include "bench/gpu/gpu_adam.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "bench/harness/tuned_contender.h"
#include "bench/optimizers/training.h"
#include "coconet/base/status.h"
#include "coconet/schedule/describe.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {
namespace {

struct Side {
  std::string name;
  Admits admits;  // empty: admits all
};

std::vector<Side> Sides() {
  return {{"ours", nullptr},
          {"ar_c",
           [](const Schedule& s, const Config&) { return Describe(s) == "fuse(RS, AG); fuse(C)"; }},
          {"rs_c_ag", [](const Schedule& s, const Config&) {
             return absl::StartsWith(Describe(s), "RS; fuse(C); AG p");
           }}};
}

void SetTimes(Row& row, const std::string& side, const Timing& timing) {
  row.Set(side + "_us", timing.median_us)
      .Set(side + "_low_us", timing.low_us)
      .Set(side + "_high_us", timing.high_us);
}

}  // namespace

absl::StatusOr<Row> MeasureGpuAdam(Rank& rank, const GpuAdamCase& c) {
  WorkloadOptions options = kAdam;
  options.dtype = c.dtype;
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload("adam", options));
  ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, {{"N", c.n}}));
  absl::StatusOr<std::unique_ptr<CopyContender>> copy =
      CopyContender::Make(rank, c.copied_bytes, c.copy);
  RETURN_IF_ERROR(rank.exchange().Agree(copy.status()));
  std::vector<std::unique_ptr<TunedContender>> tuned;
  std::vector<Contender> contenders = {
      {"copy", [&](int64_t steps) { return (*copy)->Run(steps); }}};
  for (const Side& side : Sides()) {
    SessionOptions session;
    session.cache_file = ":none:";
    session.budget_s = c.budget_s;
    session.admits = side.admits;
    ASSIGN_OR_RETURN(tuned.emplace_back(), TunedContender::Make(rank, session, program));
    contenders.push_back(
        {side.name, [it = tuned.back().get()](int64_t steps) { return it->Run(steps); }});
  }
  ASSIGN_OR_RETURN(const std::vector<Measured> measured,
                   MeasureInRounds(rank, contenders, {.seconds = c.seconds}));
  Row row;
  if (rank.rank() != 0) return row;
  const auto& record = tuned[0]->program().record();
  row.Set("case", "adam")
      .Set("ranks", int64_t{rank.size()})
      .Set("n", c.n)
      .Set("dtype", std::string(Name(c.dtype)))
      .Set("device", rank.topology().device);
  for (const Measured& m : measured) SetTimes(row, m.name, m.timing);
  for (size_t i = 1; i < contenders.size(); ++i) {
    row.Set(contenders[i].name + "_variant", Words(tuned[i - 1]->program().record().best));
  }
  const double ours_us = row.Number("ours_us"), copy_us = row.Number("copy_us");
  row.Set("rounds", int64_t{measured[1].timing.samples})
      .Set("must_move_bytes", record.necessary_bytes)
      .Set("copy_gb_s", 2e-3 * static_cast<double>(c.copied_bytes) / copy_us)
      .Set("gb_s", 1e-3 * static_cast<double>(record.necessary_bytes) / ours_us)
      .Set("of_copy", row.Number("gb_s") / row.Number("copy_gb_s"))
      .Set("over_ar_c", row.Number("ar_c_us") / ours_us)
      .Set("over_rs_c_ag", row.Number("rs_c_ag_us") / ours_us);
  row.Set("of_copy", row.Number("gb_s") / row.Number("copy_gb_s"));
  return row;
}

}  // namespace coconet::bench
