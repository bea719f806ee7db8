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
  RETURN_IF_ERROR(made->Allocate(session));
  RETURN_IF_ERROR(made->Bind());
  return made;
}

absl::Status TunedStep::Allocate(Session& session) {
  for (const int64_t size : TensorSizes(cell_)) {
    for (std::vector<DeviceBuffer>* buffers : {&gradients_, &weights_}) {
      ASSIGN_OR_RETURN(buffers->emplace_back(), session.Allocate(cell_.dtype, size));
    }
  }
  return absl::OkStatus();
}

absl::Status TunedStep::Bind() {
  std::vector<Binding> bindings;
  for (size_t t = 0; t < gradients_.size(); ++t) {
    bindings.emplace_back(NameOf("g", t), gradients_[t]);
    bindings.emplace_back(NameOf("p", t), weights_[t]);
  }
  ASSIGN_OR_RETURN(BoundProgram bound, program_.Bind(bindings));
  bound_ = std::make_unique<BoundProgram>(std::move(bound));
  ASSIGN_OR_RETURN(const ScalarRef lr, bound_->Scalar("lr"));
  ASSIGN_OR_RETURN(number_, bound_->Scalar("step"));
  bound_->Set(lr, kLearningRate);
  return absl::OkStatus();
}

std::string TunedStep::NameOf(absl::string_view tensor, size_t number) const {
  return cell_.list.empty() ? std::string(tensor) : TensorName(tensor, static_cast<int>(number));
}

absl::Status TunedStep::Run(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    bound_->Set(number_, static_cast<double>(++step_));
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
    for (int64_t i = 0; i < n; ++i)
      master[i] = static_cast<float>(LoadElement(cell_.dtype, weights, i).real());
    RETURN_IF_ERROR(bound_->Write(NameOf("w", t), master.data(), n));
  }
  return absl::OkStatus();
}

}  // namespace coconet::bench
