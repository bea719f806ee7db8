#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/baselines/array.h"
#include "bench/harness/finding.h"
#include "bench/harness/rounds.h"
#include "bench/harness/row.h"
#include "bench/harness/tuned_contender.h"
#include "coconet/base/dtype.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "runtime/rank.h"

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

// What takes place on two nodes of one rank, by sides:
//   computation  all that a rank computes, tuned, nothing exchanged
//   sending      what a rank exchanges, nothing computed, by the library that ours uses
//   ours         the program, tuned
//   sequential   the same without overlap

/// Collective: measures a worker's sides; "sending" sends `bytes` from this rank in a step. Adds
/// facts "sending_processor_us", and "bytes", the most of all ranks.
absl::StatusOr<std::vector<Finding>> MeasureOnNode(const Contenders& contenders, int64_t bytes,
                                                   double seconds);

/// SessionOptions::admits of "sequential".
bool IsSequential(const Schedule& schedule, const Config& config);

/// Two nodes, on which workers run that call MeasureOnNode.
struct TwoNodes {
  std::string scratch;  // a folder for temporary files
  std::string cache;    // the name of the tuning cache in it that the workers share
  int ranks_per_node = 1;
  std::string sending = "sending";  // the workers' name of that side

  absl::StatusOr<std::vector<Finding>> Run(const std::string& rate,
                                           const std::vector<std::string>& arguments) const;
  /// The rate at which sending takes the wanted share of the computation. `parts` are the arguments
  /// of a worker that measures sending and computation alone, and has the fact "bytes".
  absl::StatusOr<LinkRate> FindRate(const std::vector<std::string>& parts,
                                    const WantedShare& wanted) const;
};

/// Starts workers of MeasureOnNode on the nodes, whose links have the rate at which sending takes
/// 0.6 to 1 of the computation, and sets the row's findings and ratios. "ceiling" is what
/// computation and sending, one after the other, take over OverlapBound. `parts` are the arguments
/// of a worker that measures computation and sending alone, `all` those of one that measures all
/// sides; `name` is of the tuning cache in `scratch` that they share.
absl::Status MeasureOnTwoNodes(const std::vector<std::string>& parts,
                               const std::vector<std::string>& all, const std::string& scratch,
                               const std::string& name, Row& row);

/// The rows that this rank has for every rank: groups of `capacity` rows of `row` elements, of
/// which the first ones are in use. `leaving` and `arriving` count those in use, by peer, then by
/// group; what rank a has as leaving for b, b has as arriving from a.
struct RankRows {
  DType dtype{};
  int64_t groups = 0, capacity = 0, row = 0;
  std::vector<int32_t> leaving = {}, arriving = {};
};

/// Sends the rows in use by the library of the rank's world, with nothing computed.
class RowSender {
 public:
  static absl::StatusOr<std::unique_ptr<RowSender>> Make(Rank& rank, RankRows rows);
  /// Collective: one AllToAll of the rows that leave.
  absl::Status Send();
  /// Collective: one AllToAll of the rows that have arrived, back to where they came from.
  absl::Status SendBack();
  /// What Send, and SendBack, send to other ranks.
  int64_t bytes_there() const { return bytes_there_; }
  int64_t bytes_back() const { return bytes_back_; }

 private:
  Rank* rank_ = nullptr;
  RankRows rows_;
  CollectiveStep step_;
  Array here_, there_;
  int64_t bytes_there_ = 0, bytes_back_ = 0;
};

}  // namespace coconet::bench
