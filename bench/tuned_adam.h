#ifndef COCONET_BENCH_TUNED_ADAM_H_
#define COCONET_BENCH_TUNED_ADAM_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autotune/session.h"
#include "coconet/base/dtype.h"

namespace coconet::bench {

/// A step of data-parallel Adam as Coconet runs it: tuned, on buffers from the Session.
class TunedAdam {
 public:
  /// Collective; tunes when the cache does not know the program. `dtype`: f32, or f16 for mixed precision.
  static absl::StatusOr<std::unique_ptr<TunedAdam>> Make(Session& session, DType dtype, int64_t n);

  /// As a training loop does it: the step number is set before each step.
  absl::Status Run(int64_t steps);

  void* gradient() const { return gradient_.data(); }
  void* weights() const { return weights_.data(); }
  /// Collective. Sets the weights of all ranks, and their master copy, as FillWeights does.
  absl::Status SetWeights();

  const TunedProgram& program() const { return program_; }

 private:
  TunedAdam(TunedProgram program, DeviceBuffer gradient, DeviceBuffer weights, BoundProgram bound)
      : program_(std::move(program)),
        gradient_(std::move(gradient)),
        weights_(std::move(weights)),
        bound_(std::move(bound)) {}

  TunedProgram program_;
  DeviceBuffer gradient_, weights_;
  BoundProgram bound_;  // uses the buffers: goes first
  ScalarRef number_;
  int64_t step_ = 0;
};

}  // namespace coconet::bench

#endif  // COCONET_BENCH_TUNED_ADAM_H_
