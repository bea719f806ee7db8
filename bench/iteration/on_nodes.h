#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/finding.h"
#include "bench/row.h"
#include "coconet/workloads/training_steps.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// A whole training step of GPT-2 on nodes of one rank each.
struct NodesCase {
  GptModel model;
  double seconds = 20;   // of the rounds
  double budget_s = 60;  // of tuning one contender
};

/// Collective, on a rank of a worker. What is timed is what NodeContenders says, where
///   computation  the step on one rank alone, tuned
///   sending      one AllReduce of as many bytes as all gradients have
///   sequential   the step with its AllReduces after all gradients, tuned
///   buckets      the step with buckets of 25 MiB beside the computation, tuned
/// `parts`: only the first two.
absl::StatusOr<std::vector<Finding>> MeasureStepOnNodes(Rank& rank, const NodesCase& c, bool parts);

}  // namespace coconet::bench
