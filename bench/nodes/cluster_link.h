#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "bench/harness/rounds.h"

namespace coconet::bench {

// Benchmarks on bench/cluster/run.sh whose links get the rate at which sending takes a wanted share
// of computation.

/// The command that starts processes on nodes whose links have `rate`, as tc(8) writes it, or
/// "none" (Launch::launcher).
std::vector<std::string> ClusterLauncher(int nodes, int ranks_per_node, const std::string& rate);

/// The times of one step: of computation alone, and of communication alone.
struct StepParts {
  double computation_us = 0, sending_us = 0;
  double share() const { return sending_us / computation_us; }
};

/// The share of computation that sending should take.
struct WantedShare {
  double least = 0.6, most = 1;
  double aim = 0.8;
  int tries = 6;
};
/// WantedShare's defaults; with --quick any share.
WantedShare UsualShare();

struct LinkRate {
  std::string rate;  // as tc(8) writes it: "412mbit"
  StepParts parts;   // at that rate
};

/// Measures without a limit first, then at the rate at which `bytes`, those that leave a node in a
/// step, take the wanted share of the computation; then at others, until the share is within
/// bounds. FailedPrecondition if it is above them without a limit, or not within them in `tries`.
absl::StatusOr<LinkRate> ChooseLinkRate(
    int64_t bytes, const WantedShare& wanted,
    absl::FunctionRef<absl::StatusOr<StepParts>(const std::string& rate)> measure);

/// Collective, on ranks that have a core each. The core time of one step, in microseconds, maximum
/// over ranks: elapsed time times the share that a SCHED_IDLE loop on the same core loses while the
/// step runs. Includes softirq time of the kernel's network stack, which getrusage does not.
absl::StatusOr<double> ProcessorTime(Rank& rank, const Contender& contender, int64_t steps);

/// The least time of a step that computes and sends: the processor does all that both take of it,
/// and the link is busy as long as sending takes.
double OverlapBound(const StepParts& parts, double sending_processor_us);

}  // namespace coconet::bench
