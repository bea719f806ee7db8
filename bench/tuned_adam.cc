#include "bench/tuned_adam.h"

#include <utility>
#include <vector>

#include "bench/training.h"
#include "coconet/base/status.h"
#include "coconet/workloads.h"

namespace coconet::bench {

absl::StatusOr<std::unique_ptr<TunedAdam>> TunedAdam::Make(Session& session, DType dtype, int64_t n) {
  WorkloadOptions options = kAdam;
  options.dtype = dtype;
  ASSIGN_OR_RETURN(TunedProgram program, session.Compile(MakeWorkload("adam", options), {{"N", n}}));
  ASSIGN_OR_RETURN(DeviceBuffer gradient, session.Allocate(dtype, n));
  ASSIGN_OR_RETURN(DeviceBuffer weights, session.Allocate(dtype, n));
  ASSIGN_OR_RETURN(BoundProgram bound, program.Bind({{"g", gradient}, {"p", weights}}));
  ASSIGN_OR_RETURN(const ScalarRef lr, bound.Scalar("lr"));
  ASSIGN_OR_RETURN(const ScalarRef number, bound.Scalar("step"));
  bound.Set(lr, kLearningRate);
  std::unique_ptr<TunedAdam> made(
      new TunedAdam(std::move(program), std::move(gradient), std::move(weights), std::move(bound)));
  made->number_ = number;
  return made;
}

absl::Status TunedAdam::Run(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    bound_.Set(number_, static_cast<double>(++step_));
    RETURN_IF_ERROR(bound_.Run());
  }
  return absl::OkStatus();
}

absl::Status TunedAdam::SetWeights() {
  const int64_t n = weights_.elements();
  std::vector<float> values(n);
  FillWeights(weights_.dtype(), weights(), n);
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(LoadElement(weights_.dtype(), weights(), i));
  return weights_.dtype() == DType::kF32 ? absl::OkStatus() : bound_.Write("w", values.data(), n);
}

}  // namespace coconet::bench
