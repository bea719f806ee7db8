#include "bench/cluster_link.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

/// In kbit below 10 mbit, so that a step is below a thousandth.
std::string RateText(double bits_per_s) {
  return bits_per_s >= 1e7 ? absl::StrFormat("%.0fmbit", bits_per_s / 1e6)
                           : absl::StrFormat("%.0fkbit", std::max(bits_per_s / 1e3, 1.0));
}

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

std::vector<std::string> ClusterLauncher(int nodes, int ranks_per_node, const std::string& rate) {
  return {"bench/cluster/run.sh",
          absl::StrCat("--nodes=", nodes),
          absl::StrCat("--ranks-per-node=", ranks_per_node),
          absl::StrCat("--rate=", rate),
          "--mpirun=--timeout",
          "--mpirun=900",
          "--"};
}

absl::StatusOr<LinkRate> ChooseLinkRate(
    int64_t bytes, const WantedShare& wanted,
    absl::FunctionRef<absl::StatusOr<StepParts>(const std::string& rate)> measure) {
  ASSIGN_OR_RETURN(const StepParts unlimited, measure("none"));
  if (!(unlimited.computation_us > 0) || unlimited.share() > wanted.most) {
    return absl::FailedPreconditionError(
        absl::StrFormat("links without a limit: sending takes %.3g us, computation %.3g us, want "
                        "at most %.2g of it",
                        unlimited.sending_us, unlimited.computation_us, wanted.most));
  }
  double rate = 8e6 * static_cast<double>(bytes) / (wanted.aim * unlimited.computation_us);
  double share = 0;
  for (int i = 0; i < wanted.tries; ++i) {
    const std::string text = RateText(rate);
    ASSIGN_OR_RETURN(const StepParts parts, measure(text));
    share = parts.share();
    if (share >= wanted.least && share <= wanted.most) return LinkRate{text, parts};
    rate *= std::clamp(share / wanted.aim, 0.25, 4.0);
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("links at %d rates: sending took %.2g of computation in the end, want %.2g "
                      "to %.2g",
                      wanted.tries, share, wanted.least, wanted.most));
}

absl::StatusOr<double> ProcessorTime(Rank& rank, const Contender& contender, int64_t steps) {
  RETURN_IF_ERROR(contender.run(1));
  RETURN_IF_ERROR(rank.exchange().Barrier());
  const double before = ProcessorSeconds();
  RETURN_IF_ERROR(contender.run(steps));
  return rank.exchange().Max(1e6 * (ProcessorSeconds() - before) / static_cast<double>(steps));
}

double OverlapBound(const StepParts& parts, double sending_processor_us) {
  return std::max(parts.computation_us + sending_processor_us, parts.sending_us);
}

}  // namespace coconet::bench
