#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "autotune/store/record.h"
#include "coconet/workloads/training_steps.h"

namespace coconet::bench {

/// How long PyTorch takes for a training step on the ranks of a node, or of several
/// (torch_step.py).
struct TorchStep {
  std::string version;
  std::string form;  // "plain" or "fused": attention of the faster step
  Timing step;       // the faster of the two
  Timing products;   // the step's matrix products alone, by PyTorch, in the same rounds
  int count = 0;     // of products
};

/// Runs bench/iteration/torch_step.py by the interpreter `python` for about `seconds`. The working
/// directory is the repository's or its runfiles'. Unavailable where the interpreter has no
/// PyTorch or cannot be started; Internal, with the end of its output, where it failed.
absl::StatusOr<TorchStep> MeasureTorch(const std::string& python, const GptModel& sizes, int ranks,
                                       double seconds);
/// The same on two nodes of one rank whose links have `rate` (ClusterLauncher). `scratch` is a
/// folder for temporary files.
absl::StatusOr<TorchStep> MeasureTorchOnNodes(const std::string& python, const GptModel& sizes,
                                              const std::string& rate, const std::string& scratch,
                                              double seconds);

}  // namespace coconet::bench
