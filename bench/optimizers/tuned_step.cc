#include "bench/optimizers/tuned_step.h"

#include "bench/optimizers/training.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {

absl::StatusOr<TunedProgram> TunedStep::Compile(Session& session, const Cell& cell) {
  WorkloadOptions options = kAdam;
  options.dtype = cell.dtype;
  return session.Compile(MakeWorkload(cell.workload, options), SizesOf(cell));
}

absl::StatusOr<std::unique_ptr<TunedStep>> TunedStep::Make(Session& session, const Cell& cell) {
  ASSIGN_OR_RETURN(TunedProgram program, Compile(session, cell));
  std::unique_ptr<TunedStep> made(new TunedStep(cell, std::move(program)));
  std::vector<Binding> bindings;
  for (const int64_t size : TensorSizes(cell)) {
    const size_t t = made->weights_.size();
    ASSIGN_OR_RETURN(made->gradients_.emplace_back(), session.Allocate(cell.dtype, size));
    ASSIGN_OR_RETURN(made->weights_.emplace_back(), session.Allocate(cell.dtype, size));
    bindings.emplace_back(made->NameOf("g", t), made->gradients_[t]);
    bindings.emplace_back(made->NameOf("p", t), made->weights_[t]);
  }
  ASSIGN_OR_RETURN(BoundProgram bound, made->program_.Bind(bindings));
  made->bound_ = std::make_unique<BoundProgram>(std::move(bound));
  ASSIGN_OR_RETURN(const ScalarRef lr, made->bound_->Scalar("lr"));
  ASSIGN_OR_RETURN(made->number_, made->bound_->Scalar("step"));
  RETURN_IF_ERROR(made->bound_->Set(lr, kLearningRate));
  return made;
}

StepTensors TunedStep::tensors() const {
  StepTensors all;
  for (const DeviceBuffer& gradient : gradients_) all.gradients.push_back(gradient.data());
  for (const DeviceBuffer& weights : weights_) all.weights.push_back(weights.data());
  return all;
}

std::string TunedStep::NameOf(absl::string_view tensor, size_t number) const {
  return cell_.list.empty() ? std::string(tensor) : TensorName(tensor, static_cast<int>(number));
}

absl::Status TunedStep::Run(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    RETURN_IF_ERROR(bound_->Set(number_, static_cast<double>(++step_)));
    RETURN_IF_ERROR(bound_->Run());
  }
  return absl::OkStatus();
}

absl::Status TunedStep::Begin(int rank) {
  for (size_t t = 0; t < weights_.size(); ++t) {
    const int64_t n = weights_[t].elements();
    void* const weights = weights_[t].data();
    FillGradient(cell_.dtype, gradients_[t].data(), n, rank);
    FillWeights(cell_.dtype, weights, n);
    if (cell_.dtype == DType::kF32) continue;
    std::vector<float> master(n);
    Widen(cell_.dtype, weights, n, master.data());
    RETURN_IF_ERROR(bound_->Write(NameOf("w", t), master.data(), n));
  }
  return absl::OkStatus();
}

}  // namespace coconet::bench
