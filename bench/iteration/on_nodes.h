#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "coconet/ir/types.h"

namespace coconet::bench {

/// A whole training step of GPT-2, or a round of Overlap Local-SGD, on nodes of one rank each.
struct NodesCase {
  std::string program;        // gpt_step or local_sgd
  Sizes sizes;                // SizesOf it
  double seconds = 4;         // of the rounds
  double budget_s = 60;       // of tuning one contender
  bool parts_only = false;    // "computation" and "sending" alone
  std::string timeline = {};  // the file for the launches of a step of "ours"; "": none

  /// The fields that are words of a worker's arguments (bench/harness/worker.h).
  static auto Fields(auto& c) {
    return std::tie(c.program, c.sizes, c.seconds, c.budget_s, c.parts_only, c.timeline);
  }
};

/// The arguments of a worker on such nodes, whose sides (node_row.h) are
///   computation  the step on one rank alone, tuned
///   sending      one AllReduce of as many bytes as the step's AllReduces have
///   ours         the step, tuned
///   sequential   the step without overlap, tuned
///   buckets      gpt_step with buckets of 25 MiB beside the computation, tuned
std::vector<std::string> Arguments(const NodesCase& c);

}  // namespace coconet::bench
