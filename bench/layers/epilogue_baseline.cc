#include "bench/layers/epilogue_baseline.h"

#include "absl/strings/str_cat.h"
#include "bench/baselines/kernels.h"
#include "bench/baselines/mpi.h"
#include "bench/harness/tuned_contender.h"
#include "coconet/base/philox.h"
#include "coconet/base/status.h"
#include "coconet/workloads/model_shapes.h"

namespace coconet::bench {
namespace {

DType SumType(EpilogueForm form, DType dtype) {
  return form == EpilogueForm::kInF32 ? DType::kF32 : dtype;
}

/// Rows [row, row + rows) and columns [column, column + columns) of a tensor whose rows have
/// `width`.
struct Window {
  int64_t row = 0, rows = 0, column = 0, columns = 0, width = 0;
};
absl::StatusOr<Array> Filled(absl::string_view tensor, DType dtype, const Window& w) {
  ASSIGN_OR_RETURN(Array array,
                   Array::Allocate(w.rows * w.columns * static_cast<int64_t>(SizeOf(dtype))));
  for (int64_t i = 0; i < w.rows; ++i) {
    for (int64_t j = 0; j < w.columns; ++j) {
      StoreElement(dtype, array.as<void>(), i * w.columns + j,
                   NumberAt(tensor, (w.row + i) * w.width + w.column + j, 0));
    }
  }
  return array;
}

}  // namespace

std::vector<EpilogueForm> EpilogueFormsFor(DType dtype) {
  if (dtype == DType::kF32) return {EpilogueForm::kOwn};
  if (dtype == DType::kBF16) return {EpilogueForm::kOwn, EpilogueForm::kInF32};
  return {};
}

absl::StatusOr<std::unique_ptr<EpilogueBaseline>> EpilogueBaseline::Make(
    EpilogueForm form, OneDnnGemm::Weights weights, const EpilogueSize& size, int rank, int ranks) {
  if (EpilogueFormsFor(size.dtype).empty() || size.columns % kEpilogueColumns != 0 ||
      size.k % ranks != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("epilogue baseline: want f32 or bf16, columns in ", kEpilogueColumns,
                     "s and k in slices of ", ranks, " ranks, have ", Name(size.dtype), ", ",
                     size.columns, " and ", size.k));
  }
  std::unique_ptr<EpilogueBaseline> made(new EpilogueBaseline(form, size));
  const int64_t k = size.k / ranks;
  const DType t = size.dtype;
  ASSIGN_OR_RETURN(
      made->x_,
      Filled("x", t, {.rows = size.tokens, .column = rank * k, .columns = k, .width = size.k}));
  ASSIGN_OR_RETURN(
      made->w_,
      Filled("w", t, {.row = rank * k, .rows = k, .columns = size.columns, .width = size.columns}));
  ASSIGN_OR_RETURN(made->b_, Filled("b", t, {.rows = 1, .columns = size.columns}));
  ASSIGN_OR_RETURN(
      made->r_,
      Filled("r", t, {.rows = size.tokens, .columns = size.columns, .width = size.columns}));
  ASSIGN_OR_RETURN(
      made->z_, Array::Allocate(made->elements() * static_cast<int64_t>(SizeOf(SumType(form, t)))));
  ASSIGN_OR_RETURN(made->y_, Array::Allocate(made->elements() * static_cast<int64_t>(SizeOf(t))));
  ASSIGN_OR_RETURN(made->product_,
                   OneDnnGemm::Make(t, {.m = size.tokens, .n = size.columns, .k = k}, weights,
                                    SumType(form, t)));
  RETURN_IF_ERROR(made->product_->SetWeights(made->w_.as<void>()));
  return made;
}

absl::Status EpilogueBaseline::AllReduce() {
  return MpiAllReduce(SumType(form_, size_.dtype), z_.as<void>(), elements());
}

absl::Status EpilogueBaseline::RunProduct(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(product_->Run(x_.as<void>(), z_.as<void>()));
  return absl::OkStatus();
}

absl::Status EpilogueBaseline::RunLoop(int64_t steps) {
  const EpilogueLoop loop = {.z = z_.as<void>(),
                             .b = b_.as<void>(),
                             .r = r_.as<void>(),
                             .y = y_.as<void>(),
                             .rows = size_.tokens,
                             .columns = size_.columns,
                             .stream = 0,
                             .seed = 1,
                             .threshold = DropoutThreshold(kEpilogueDropout),
                             .scale = static_cast<float>(1 / (1 - kEpilogueDropout))};
  const Kernels& kernels = BestKernels();
  const auto run = size_.dtype == DType::kF32      ? kernels.epilogue_f32
                   : form_ == EpilogueForm::kInF32 ? kernels.epilogue_bf16_from_f32
                                                   : kernels.epilogue_bf16;
  for (int64_t i = 0; i < steps; ++i) run(loop);
  return absl::OkStatus();
}

absl::Status EpilogueBaseline::Run(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    RETURN_IF_ERROR(RunProduct(1));
    RETURN_IF_ERROR(AllReduce());
    RETURN_IF_ERROR(RunLoop(1));
  }
  return absl::OkStatus();
}

std::string EpilogueBaseline::Form() const {
  const bool widened = product_->multiplies() != size_.dtype;
  return absl::StrCat(form_ == EpilogueForm::kInF32 ? "sums in f32" : "sums in the product's type",
                      widened ? ", product by way of f32" : "");
}

std::vector<float> EpilogueBaseline::Result() const {
  std::vector<float> result(static_cast<size_t>(elements()));
  for (int64_t i = 0; i < elements(); ++i)
    result[i] = static_cast<float>(LoadElement(size_.dtype, y_.as<void>(), i).real());
  return result;
}

}  // namespace coconet::bench
