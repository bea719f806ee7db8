#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autotune/session/session.h"
#include "bench/optimizers/baseline.h"
#include "bench/optimizers/cell.h"

namespace coconet::bench {

/// A step of a data-parallel optimizer as Coconet runs it: tuned, on buffers of the Session.
class TunedStep {
 public:
  /// Collective; tunes if the cache does not know the program.
  static absl::StatusOr<TunedProgram> Compile(Session& session, const Cell& cell);
  /// Compile, then allocates and binds memory.
  static absl::StatusOr<std::unique_ptr<TunedStep>> Make(Session& session, const Cell& cell);

  /// Like a training loop: sets the step number before each step.
  absl::Status Run(int64_t steps);

  StepTensors tensors() const;
  /// Collective. Sets gradients, weights and the weights' master copies to those of FillGradient
  /// and FillWeights. The moments stay.
  absl::Status Begin(int rank);

  const TunedProgram& program() const { return program_; }

 private:
  TunedStep(const Cell& cell, TunedProgram program) : cell_(cell), program_(std::move(program)) {}
  /// "p"; "p.3" for a list.
  std::string NameOf(absl::string_view tensor, size_t number) const;

  const Cell cell_;
  TunedProgram program_;
  std::vector<DeviceBuffer> gradients_, weights_;
  std::unique_ptr<BoundProgram> bound_;  // destroyed before the buffers
  ScalarRef number_;
  int64_t step_ = 0;
};

}  // namespace coconet::bench
