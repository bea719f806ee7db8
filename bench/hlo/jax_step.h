#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "autotune/session/session.h"
#include "bench/harness/finding.h"
#include "coconet/hlo/hlo_import.h"

namespace coconet::bench {

/// A training step that JAX wrote as HLO, with data, in a folder (gpt_step.py). The working
/// directory is the repository's or its runfiles'.
struct JaxStep {
  std::string python, folder;
  std::vector<Finding> sizes = {};  // facts: of the model and its training
  ImportedHlo imported = {};

  /// Writes the step. `options`: arguments of gpt_step.py make. Unavailable if the interpreter
  /// `python` has no JAX or cannot be started.
  static absl::StatusOr<JaxStep> Make(const std::string& python, const std::string& folder,
                                      const std::vector<std::string>& options);
  int64_t Size(absl::string_view name) const { return CountOf(sizes, name); }
  std::string File(absl::string_view name) const { return absl::StrCat(folder, "/", name); }

  /// Runs a command of gpt_step.py: "compare" with what TrainAsJax wrote, "time" for JAX's own
  /// step.
  absl::StatusOr<std::vector<Finding>> Run(const std::string& command,
                                           const std::vector<std::string>& options = {}) const;
};

/// Collective: runs all steps of the training by `tuned`, the imported program, with the weights
/// and data of JAX, and writes losses and weights on rank 0.
absl::Status TrainAsJax(const JaxStep& step, int rank, BoundProgram& tuned);

}  // namespace coconet::bench
