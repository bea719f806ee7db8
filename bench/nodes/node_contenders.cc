#include "bench/nodes/node_contenders.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "bench/harness/tuned_contender.h"
#include "bench/nodes/cluster_link.h"
#include "coconet/base/status.h"

namespace coconet::bench {

void NodeContenders::AddTuned(absl::string_view side, Run run, const TuningRecord& record) {
  contenders_.push_back({std::string(side), std::move(run)});
  variants_.push_back({.side = "variant", .name = std::string(side), .detail = Words(record.best)});
}

absl::StatusOr<std::vector<Finding>> NodeContenders::Measure(Rank& rank, int64_t bytes,
                                                             double seconds) const {
  ASSIGN_OR_RETURN(std::vector<Finding> findings,
                   MeasureInRounds(rank, contenders_, {.seconds = seconds}));
  findings.insert(findings.end(), variants_.begin(), variants_.end());
  const auto sending =
      absl::c_find_if(contenders_, [](const Contender& c) { return c.name == "sending"; });
  ASSIGN_OR_RETURN(const double processor_us, ProcessorTime(rank, *sending, /*steps=*/5));
  findings.push_back({.side = "sending_processor_us", .detail = absl::StrCat(processor_us)});
  ASSIGN_OR_RETURN(const double most_bytes, rank.exchange().Max(static_cast<double>(bytes)));
  findings.push_back({.side = "bytes", .detail = absl::StrCat(static_cast<int64_t>(most_bytes))});
  return findings;
}

bool IsSequential(const Schedule& schedule, const Config& config) {
  return schedule.overlaps().empty() && !config.concurrent;
}

}  // namespace coconet::bench
