#ifndef COCONET_BENCH_TUNED_STEP_H_
#define COCONET_BENCH_TUNED_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autotune/session/session.h"
#include "bench/cell.h"

namespace coconet::bench {

/// A step of a data-parallel optimizer as Coconet runs it: tuned, on buffers from the Session.
class TunedStep {
 public:
  /// Collective; tunes when the cache does not know the program.
  static absl::StatusOr<TunedProgram> Compile(Session& session, const Cell& cell);
  /// The same, and gets memory.
  static absl::StatusOr<std::unique_ptr<TunedStep>> Make(Session& session, const Cell& cell);

  /// As a training loop does it: the step number is set before each step.
  absl::Status Run(int64_t steps);

  /// By tensor.
  const std::vector<DeviceBuffer>& gradients() const { return gradients_; }
  const std::vector<DeviceBuffer>& weights() const { return weights_; }
  /// Collective. Gradients and weights become those of FillGradient and FillWeights; the weights'
  /// master copies, too. The moments stay.
  absl::Status Begin(int rank);

  const TunedProgram& program() const { return program_; }

 private:
  TunedStep(const Cell& cell, TunedProgram program) : cell_(cell), program_(std::move(program)) {}
  absl::Status Allocate(Session& session);
  absl::Status Bind();
  /// "p", or "p.3" of a list.
  std::string NameOf(absl::string_view tensor, size_t number) const;

  const Cell cell_;
  TunedProgram program_;
  std::vector<DeviceBuffer> gradients_, weights_;
  std::unique_ptr<BoundProgram> bound_;  // uses the buffers: destroyed first
  ScalarRef number_;
  int64_t step_ = 0;
};

}  // namespace coconet::bench

#endif  // COCONET_BENCH_TUNED_STEP_H_
