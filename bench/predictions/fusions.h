#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/schedule.h"

namespace coconet::bench {

/// A bound program that is to be one kernel.
struct Fusion {
  std::string source;  // "drawn", "gpt_step"
  Graph program;
};

/// A program of elementwise operations, casts, broadcasts and folds over 1 Ki to 4 Mi elements,
/// inputs and outputs of f32, bf16 or f16, local or sliced, as it is drawn: it need not fuse.
absl::StatusOr<Fusion> DrawFusion(std::mt19937_64& random);

/// Training steps of GPT-2 of a few sizes, and connected parts of what their kernels could be.
class StepFusions {
 public:
  static absl::StatusOr<StepFusions> Make();
  absl::StatusOr<Fusion> Draw(std::mt19937_64& random) const;

 private:
  struct Step {
    Schedule schedule;
    std::vector<std::vector<NodeId>> groups;  // ComputeGroups, and single launches of kernels
  };
  std::vector<Step> steps_;
};

}  // namespace coconet::bench
