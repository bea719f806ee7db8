#include "bench/optimizers/scattered_baseline.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "bench/baselines/mpi.h"
#include "bench/optimizers/training.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr int64_t kAligned = 16;  // elements: 64 bytes

}  // namespace

std::string Name(const ScatteredForm& form) {
  return absl::StrCat("flatten, MPI_Allreduce, ", form.lamb ? "LAMB" : "Adam", " loops",
                      form.stored ? ", direction stored" : "",
                      form.streaming ? ", streaming stores" : "");
}

std::vector<ScatteredForm> ScatteredFormsFor(const Cell& cell) {
  std::vector<ScatteredForm> forms;
  const bool lamb = cell.workload == "lamb";
  if (cell.dtype != DType::kF32 || (!lamb && cell.workload != "adam")) return forms;
  for (const bool streaming : {false, true}) {
    forms.push_back({lamb, false, streaming});
    if (lamb) forms.push_back({lamb, true, streaming});
  }
  return forms;
}

absl::StatusOr<std::shared_ptr<const ScatteredMemory>> ScatteredMemory::Make(
    const Cell& cell, const StepTensors* shared) {
  auto memory = std::make_shared<ScatteredMemory>();
  memory->sizes = TensorSizes(cell);
  for (const int64_t size : memory->sizes) {
    memory->offsets.push_back(memory->end);
    memory->end += (size + kAligned - 1) / kAligned * kAligned;
  }
  const auto bytes = memory->end * static_cast<int64_t>(sizeof(float));
  for (Array* array : {&memory->flat, &memory->m, &memory->v}) {
    ASSIGN_OR_RETURN(*array, Array::Allocate(bytes));
  }
  if (shared != nullptr) {
    memory->tensors = *shared;
    return memory;
  }
  ASSIGN_OR_RETURN(memory->own, Array::Allocate(2 * bytes));
  for (const int64_t offset : memory->offsets) {
    memory->tensors.gradients.push_back(memory->own.as<float>() + offset);
    memory->tensors.weights.push_back(memory->own.as<float>() + memory->end + offset);
  }
  return memory;
}

void ScatteredBaseline::Begin(int rank) {
  const StepTensors& tensors = memory_->tensors;
  for (size_t t = 0; t < memory_->sizes.size(); ++t) {
    FillGradient(DType::kF32, tensors.gradients[t], memory_->sizes[t], rank);
    FillWeights(DType::kF32, tensors.weights[t], memory_->sizes[t]);
  }
  for (const Array* moment : {&memory_->m, &memory_->v})
    std::fill_n(moment->as<float>(), memory_->end, 0.0f);
  step_ = 0;
}

absl::Status ScatteredBaseline::Run(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    Flatten();
    RETURN_IF_ERROR(MpiAllReduce(memory_->flat.as<float>(), memory_->end));
    Update(AdamStepNumber(++step_, ranks_, form_.lamb ? 1 : kLearningRate));
  }
  return absl::OkStatus();
}

void ScatteredBaseline::Flatten() {
  for (size_t t = 0; t < memory_->sizes.size(); ++t) {
    float* const to = memory_->flat.as<float>() + memory_->offsets[t];
    if (form_.streaming)
      BestKernels().copy_streaming(memory_->tensors.gradients[t], to, memory_->sizes[t]);
    else
      std::memcpy(to, memory_->tensors.gradients[t], memory_->sizes[t] * sizeof(float));
  }
}

void ScatteredBaseline::Update(const AdamStep& step) {
  const Kernels::Adam adam = form_.streaming ? BestKernels().adam_streaming : BestKernels().adam;
  for (size_t t = 0; t < memory_->sizes.size(); ++t) {
    if (form_.lamb) {
      UpdateLamb(step, t);
      continue;
    }
    const int64_t at = memory_->offsets[t];
    adam(step, memory_->flat.as<float>() + at, memory_->tensors.weights[t],
         memory_->m.as<float>() + at, memory_->v.as<float>() + at, memory_->sizes[t]);
  }
}

void ScatteredBaseline::UpdateLamb(const AdamStep& step, size_t tensor) {
  const Kernels& kernels = BestKernels();
  const LambStep lamb = {step, static_cast<float>(kAdam.weight_decay)};
  const int64_t at = memory_->offsets[tensor], n = memory_->sizes[tensor];
  float *sum = memory_->flat.as<float>() + at, *p = memory_->tensors.weights[tensor];
  float *m = memory_->m.as<float>() + at, *v = memory_->v.as<float>() + at;
  const LambSquares squares =
      (form_.stored ? kernels.lamb_moments_store : kernels.lamb_moments)(lamb, sum, p, m, v, n);
  const bool both = squares.weights > 0 && squares.direction > 0;
  const double ratio = both ? std::sqrt(squares.weights / squares.direction) : 1;
  const Kernels::LambApply apply =
      form_.stored
          ? (form_.streaming ? kernels.lamb_apply_stored_streaming : kernels.lamb_apply_stored)
          : (form_.streaming ? kernels.lamb_apply_streaming : kernels.lamb_apply);
  apply(lamb, static_cast<float>(kLearningRate * ratio), sum, p, m, v, n);
}

std::vector<const void*> ScatteredBaseline::weights() const {
  return {memory_->tensors.weights.begin(), memory_->tensors.weights.end()};
}

}  // namespace coconet::bench
