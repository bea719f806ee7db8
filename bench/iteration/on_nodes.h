#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/finding.h"
#include "bench/harness/row.h"
#include "coconet/workloads/training_steps.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// A whole training step of GPT-2, or a round of Overlap Local-SGD, on nodes of one rank each.
struct NodesCase {
  std::string name = "gpt_step";  // or "local_sgd"
  GptModel model;                 // of gpt_step
  LocalSgdModel local = {};       // of local_sgd
  double seconds = 20;            // of the rounds
  double budget_s = 60;           // of tuning one contender
  std::string timeline = {};      // the file for the launches of a step of "ours"; "": none
  /// Examples or tokens that a rank has in a step.
  int64_t tokens() const {
    return name == "gpt_step" ? model.tokens() : local.examples * local.local_steps;
  }
};

/// Collective, on a rank of a worker. What is timed is what NodeContenders says, where
///   computation  the step on one rank alone, tuned
///   sending      one AllReduce of as many bytes as the step's AllReduces have
///   sequential   the step with its AllReduces beside nothing, tuned
///   buckets      gpt_step with buckets of 25 MiB beside the computation, tuned
/// `parts`: only the first two.
absl::StatusOr<std::vector<Finding>> MeasureStepOnNodes(Rank& rank, const NodesCase& c, bool parts);

}  // namespace coconet::bench
