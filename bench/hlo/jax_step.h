#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/session/session.h"
#include "autotune/store/record.h"
#include "coconet/hlo/hlo_import.h"

namespace coconet::bench {

/// A GPT and its training, as bench/hlo/gpt_step.py takes them.
struct JaxSizes {
  int ranks = 2, steps = 20;
  int64_t layers = 2, width = 32, heads = 4, vocabulary = 61, length = 12, examples = 2;
};

/// A training step that JAX wrote as HLO, with data, in a folder. The working directory is the
/// repository's or its runfiles'.
class JaxStep {
 public:
  /// Unavailable where the interpreter `python` has no JAX or cannot be started.
  static absl::StatusOr<JaxStep> Make(const std::string& python, const std::string& folder,
                                      const JaxSizes& sizes);

  const ImportedHlo& imported() const { return imported_; }
  const std::string& folder() const { return folder_; }
  int steps() const { return steps_; }
  /// By parameter: differs by rank and step.
  const std::vector<bool>& are_data() const { return are_data_; }

  /// Compares losses and weights, once JaxTraining::Save wrote them, with JAX's: what the script
  /// prints. Internal where they differ by more than rounding.
  absl::StatusOr<std::string> Compare() const;
  struct Time {
    Timing step;
    std::string version;  // of JAX
  };
  /// JAX's own step, for about so many seconds.
  absl::StatusOr<Time> Measure(double seconds) const;

 private:
  absl::StatusOr<std::string> RunScript(std::vector<std::string> arguments, double limit_s) const;

  std::string python_, folder_;
  int steps_ = 0;
  ImportedHlo imported_;
  std::vector<bool> are_data_;
};

/// The training by an imported step, on one rank.
class JaxTraining {
 public:
  /// Collective: tunes the step. Both must outlive the training.
  static absl::StatusOr<std::unique_ptr<JaxTraining>> Make(Session& session, const JaxStep& step);

  /// Collective: all steps, each with its data, then writes losses and weights on rank 0.
  absl::Status Train();
  /// Collective: steps on the data of the last one.
  absl::Status Run(int64_t steps);
  const TunedProgram& tuned() const { return tuned_; }

 private:
  JaxTraining(Session& session, const JaxStep& step, TunedProgram tuned)
      : session_(session), step_(step), tuned_(std::move(tuned)), data_(step.are_data().size()) {}
  absl::Status Bind();
  void ReadData(int at);
  absl::Status Save();

  Session& session_;
  const JaxStep& step_;
  TunedProgram tuned_;
  std::vector<std::vector<int32_t>> data_;  // by parameter, of those that are data
  float loss_ = 0;
  std::vector<float> losses_;
  std::unique_ptr<BoundProgram> bound_;
};

}  // namespace coconet::bench
