#pragma once

#include <string>
#include <vector>

#include "bench/harness/finding.h"
#include "bench/harness/row.h"
#include "coconet/workloads/training_steps.h"

namespace coconet::bench {

/// A whole training step of GPT-2, or a round of Overlap Local-SGD, on nodes of one rank each.
struct NodesCase {
  std::string name = "gpt_step";  // or "local_sgd"
  GptModel model;                 // of gpt_step
  LocalSgdModel local = {};       // of local_sgd
  double seconds = 20;            // of the rounds
  double budget_s = 60;           // of tuning one contender
  bool parts_only = false;        // "computation" and "sending" alone
  std::string timeline = {};      // the file for the launches of a step of "ours"; "": none
  /// Examples or tokens that a rank has in a step.
  int64_t tokens() const {
    return name == "gpt_step" ? model.tokens() : local.examples * local.local_steps;
  }

  /// Its fields are words of a worker's arguments (bench/harness/worker.h).
  static void VisitFields(auto& c, auto visit) {
    visit("name", c.name);
    visit("model.layers", c.model.layers);
    visit("model.width", c.model.width);
    visit("model.heads", c.model.heads);
    visit("model.vocabulary", c.model.vocabulary);
    visit("model.sequence", c.model.sequence);
    visit("model.examples", c.model.examples);
    visit("local.layers", c.local.layers);
    visit("local.inputs", c.local.inputs);
    visit("local.width", c.local.width);
    visit("local.outputs", c.local.outputs);
    visit("local.examples", c.local.examples);
    visit("local.local_steps", c.local.local_steps);
    visit("seconds", c.seconds);
    visit("budget_s", c.budget_s);
    visit("parts_only", c.parts_only);
    visit("timeline", c.timeline);
  }
};

/// The arguments of a worker on such nodes. What is timed is what node_row.h says, where
///   computation  the step on one rank alone, tuned
///   sending      one AllReduce of as many bytes as the step's AllReduces have
///   sequential   the step with its AllReduces beside nothing, tuned
///   buckets      gpt_step with buckets of 25 MiB beside the computation, tuned
std::vector<std::string> Arguments(const NodesCase& c);

}  // namespace coconet::bench
