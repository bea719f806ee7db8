#include "bench/optimizers/adam_baseline.h"

#include <algorithm>

#include "bench/baselines/mpi.h"
#include "bench/optimizers/training.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

bool IsMixed(BaselineForm form) {
  return form == BaselineForm::kWidened || form == BaselineForm::kHalf;
}

}  // namespace

absl::string_view Name(BaselineForm form) {
  switch (form) {
    case BaselineForm::kPlain:
      return "MPI_Allreduce, Adam loop";
    case BaselineForm::kStreaming:
      return "MPI_Allreduce, Adam loop with streaming stores";
    case BaselineForm::kWidened:
      return "gradient to f32, MPI_Allreduce, Adam loop";
    case BaselineForm::kHalf:
      return "MPI_Allreduce of f16 by an own operator, Adam loop";
  }
  return "";
}

std::vector<BaselineForm> FormsFor(DType dtype) {
  if (dtype == DType::kF32) return {BaselineForm::kPlain, BaselineForm::kStreaming};
  if (dtype == DType::kF16) return {BaselineForm::kWidened, BaselineForm::kHalf};
  return {};
}

absl::StatusOr<std::unique_ptr<AdamBaseline>> AdamBaseline::Make(BaselineForm form, int64_t n,
                                                                 int ranks) {
  std::unique_ptr<AdamBaseline> made(new AdamBaseline(form, n, ranks));
  const int64_t narrow = n * (IsMixed(form) ? 2 : 4), wide = n * 4;
  ASSIGN_OR_RETURN(made->gradient_, Array::Allocate(narrow));
  ASSIGN_OR_RETURN(made->weights_, Array::Allocate(narrow));
  ASSIGN_OR_RETURN(made->m_, Array::Allocate(wide));
  ASSIGN_OR_RETURN(made->v_, Array::Allocate(wide));
  if (IsMixed(form)) {
    ASSIGN_OR_RETURN(made->master_, Array::Allocate(wide));
  }
  if (form == BaselineForm::kWidened) {
    ASSIGN_OR_RETURN(made->wide_, Array::Allocate(wide));
  }
  return made;
}

void AdamBaseline::Begin(int rank) {
  const DType dtype = IsMixed(form_) ? DType::kF16 : DType::kF32;
  FillGradient(dtype, gradient_.as<void>(), n_, rank);
  FillWeights(dtype, weights_.as<void>(), n_);
  for (int64_t i = 0; IsMixed(form_) && i < n_; ++i) {
    master_.as<float>()[i] = static_cast<float>(LoadElement(dtype, weights_.as<void>(), i).real());
  }
  for (const Array* moment : {&m_, &v_}) std::fill_n(moment->as<float>(), n_, 0.0f);
  step_ = 0;
}

absl::Status AdamBaseline::Run(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    RETURN_IF_ERROR(Reduce());
    Update(AdamStepNumber(++step_, ranks_, kLearningRate));
  }
  return absl::OkStatus();
}

absl::Status AdamBaseline::Reduce() {
  switch (form_) {
    case BaselineForm::kPlain:
    case BaselineForm::kStreaming:
      return MpiAllReduce(gradient_.as<float>(), n_);
    case BaselineForm::kWidened:
      BestKernels().widen(gradient_.as<uint16_t>(), wide_.as<float>(), n_);
      return MpiAllReduce(wide_.as<float>(), n_);
    case BaselineForm::kHalf:
      return MpiAllReduceHalf(gradient_.as<uint16_t>(), n_);
  }
  return absl::OkStatus();
}

void AdamBaseline::Update(const AdamStep& step) {
  const Kernels& kernels = BestKernels();
  float *m = m_.as<float>(), *v = v_.as<float>();
  switch (form_) {
    case BaselineForm::kPlain:
      return kernels.adam(step, gradient_.as<float>(), weights_.as<float>(), m, v, n_);
    case BaselineForm::kStreaming:
      return kernels.adam_streaming(step, gradient_.as<float>(), weights_.as<float>(), m, v, n_);
    case BaselineForm::kWidened:
      return kernels.adam_mixed(step, wide_.as<float>(), weights_.as<uint16_t>(),
                                master_.as<float>(), m, v, n_);
    case BaselineForm::kHalf:
      return kernels.adam_half(step, gradient_.as<uint16_t>(), weights_.as<uint16_t>(),
                               master_.as<float>(), m, v, n_);
  }
}

}  // namespace coconet::bench
