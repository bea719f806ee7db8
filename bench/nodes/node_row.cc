#include "bench/nodes/node_row.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "bench/harness/worker.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

StepParts PartsOf(const std::vector<Finding>& found) {
  return {.computation_us = FastestOf(found, "computation")->timing.median_us,
          .sending_us = FastestOf(found, "sending")->timing.median_us};
}

}  // namespace

absl::StatusOr<std::vector<Finding>> MeasureOnNode(const Contenders& contenders, int64_t bytes,
                                                   double seconds) {
  Rank& rank = contenders.rank();
  ASSIGN_OR_RETURN(std::vector<Finding> findings, contenders.Measure({.seconds = seconds}));
  const auto sending =
      absl::c_find_if(contenders.timed(), [](const Contender& c) { return c.name == "sending"; });
  ASSIGN_OR_RETURN(const double processor_us, ProcessorTime(rank, *sending, /*steps=*/5));
  findings.push_back({.side = "sending_processor_us", .detail = absl::StrCat(processor_us)});
  ASSIGN_OR_RETURN(const double most_bytes, rank.exchange().Max(static_cast<double>(bytes)));
  findings.push_back({.side = "bytes", .detail = absl::StrCat(static_cast<int64_t>(most_bytes))});
  return findings;
}

bool IsSequential(const Schedule& schedule, const Config& config) {
  return schedule.overlaps().empty() && !config.concurrent;
}

absl::StatusOr<std::vector<Finding>> TwoNodes::Run(
    const std::string& rate, const std::vector<std::string>& arguments) const {
  return RunWorker({.processes = 2,
                    .launcher = ClusterLauncher(/*nodes=*/2, /*ranks_per_node=*/1, rate),
                    .arguments = arguments,
                    .cache = absl::StrCat(scratch, "/", cache),
                    .scratch = scratch});
}

absl::StatusOr<LinkRate> TwoNodes::FindRate(const std::vector<std::string>& parts,
                                            const WantedShare& wanted) const {
  // The bytes that leave a node are known to its ranks; every run reports them.
  ASSIGN_OR_RETURN(const std::vector<Finding> first, Run("none", parts));
  const auto parts_at = [&](const std::string& rate) -> absl::StatusOr<StepParts> {
    if (rate == "none") return PartsOf(first);
    ASSIGN_OR_RETURN(const std::vector<Finding> found, Run(rate, parts));
    return PartsOf(found);
  };
  return ChooseLinkRate(CountOf(first, "bytes"), wanted, parts_at);
}

absl::Status MeasureOnTwoNodes(const std::vector<std::string>& parts,
                               const std::vector<std::string>& all, const std::string& scratch,
                               const std::string& name, Row& row) {
  const TwoNodes nodes{.scratch = scratch, .cache = name};
  ASSIGN_OR_RETURN(const LinkRate link, nodes.FindRate(parts, UsualShare()));
  row.Set("link", link.rate);
  ASSIGN_OR_RETURN(const std::vector<Finding> found, nodes.Run(link.rate, all));
  SetFindings(row, found);
  const StepParts of_row = PartsOf(found);
  const double both_us = of_row.computation_us + of_row.sending_us,
               bound_us = OverlapBound(of_row, row.Number("sending_processor_us")),
               ours_us = row.Number("ours_us");
  row.Set("share", of_row.share()).Set("bound_us", bound_us).Set("of_bound", bound_us / ours_us);
  row.Set("baseline_us", row.Number("sequential_us"));
  row.Set("ratio", row.Number("sequential_us") / ours_us);
  row.Set("ceiling", both_us / bound_us).Set("of_ceiling", bound_us / ours_us);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RowSender>> RowSender::Make(Rank& rank, RankRows rows) {
  auto made = std::make_unique<RowSender>();
  const int ranks = rank.size();
  const int64_t block = rows.groups * rows.capacity * rows.row,
                row_bytes = rows.row * static_cast<int64_t>(SizeOf(rows.dtype));
  made->rank_ = &rank;
  made->step_ = {.kind = CollectiveStep::Kind::kAllToAll,
                 .dtype = rows.dtype,
                 .count = block,
                 .exchanged = {.outer = 1,
                               .inner = block,
                               .low = {ranks, 1},
                               .high = {ranks, 1},
                               .from_low = true,
                               .outer_end = 1,
                               .low_end = 1},
                 .rows = {.leaving = 0, .arriving = 1, .capacity = rows.capacity, .row = rows.row}};
  for (int64_t i = 0; i < ranks * rows.groups; ++i) {
    if (i / rows.groups == rank.rank()) continue;
    made->bytes_there_ += rows.leaving[i] * row_bytes;
    made->bytes_back_ += rows.arriving[i] * row_bytes;
  }
  const int64_t bytes = std::max<int64_t>(1, ranks * rows.groups * rows.capacity * row_bytes);
  ASSIGN_OR_RETURN(made->here_, Array::Allocate(bytes));
  ASSIGN_OR_RETURN(made->there_, Array::Allocate(bytes));
  made->rows_ = std::move(rows);
  return made;
}

absl::Status RowSender::Send() {
  return rank_->library().AllToAlls(
      {{&step_, here_.as<void>(), there_.as<void>(), rows_.leaving.data(), rows_.arriving.data()}});
}

absl::Status RowSender::SendBack() {
  return rank_->library().AllToAlls(
      {{&step_, there_.as<void>(), here_.as<void>(), rows_.arriving.data(), rows_.leaving.data()}});
}

}  // namespace coconet::bench
