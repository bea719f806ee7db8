#include "bench/layers/product_baseline.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "bench/baselines/kernels.h"
#include "bench/baselines/mpi.h"
#include "bench/harness/tuned_contender.h"
#include "coconet/base/philox.h"
#include "coconet/base/status.h"
#include "coconet/workloads/model_shapes.h"

namespace coconet::bench {
namespace {

/// Elements of a tensor, by their indices in it.
absl::StatusOr<Array> Filled(absl::string_view tensor, DType dtype, int64_t rows, int64_t columns,
                             absl::FunctionRef<int64_t(int64_t row, int64_t column)> index) {
  ASSIGN_OR_RETURN(Array array,
                   Array::Allocate(rows * columns * static_cast<int64_t>(SizeOf(dtype))));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      StoreElement(dtype, array.as<void>(), i * columns + j, NumberAt(tensor, index(i, j), 0));
  }
  return array;
}

/// One of three loops, by the types of z and y.
template <class Loop>
Loop LoopOf(DType dtype, bool sums_in_f32, Loop f32, Loop own, Loop from_f32) {
  return dtype == DType::kF32 ? f32 : sums_in_f32 ? from_f32 : own;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProductBaseline>> ProductBaseline::Make(const ProductCase& c,
                                                                       const ProductForm& form,
                                                                       const Rank& rank) {
  const bool is_norm = c.rest == ProductCase::Rest::kNorm;
  const int64_t k = c.k / rank.size(), begin = rank.rank() * k;
  const auto at = [&](int64_t i, int64_t j) { return i * c.columns + j; };
  const auto slice = [&](int64_t i, int64_t j) { return i * c.k + begin + j; };
  // oneDNN's b is [k, columns], which it multiplies at least as fast as its transpose.
  const auto weight = [&](int64_t i, int64_t j) {
    return is_norm ? j * c.k + begin + i : (begin + i) * c.columns + j;
  };
  std::unique_ptr<ProductBaseline> made(
      new ProductBaseline(c, form.sums_in_f32 || c.dtype == DType::kF32));
  const DType sum = made->sums_in_f32_ ? DType::kF32 : c.dtype;
  ASSIGN_OR_RETURN(made->x_, Filled("x", c.dtype, c.tokens, k, slice));
  ASSIGN_OR_RETURN(made->r_, Filled("r", c.dtype, c.tokens, c.columns, at));
  ASSIGN_OR_RETURN(made->vector_, Filled(is_norm ? "g" : "b", c.dtype, 1, c.columns, at));
  const auto allocate = [&](DType dtype) {
    return Array::Allocate(made->elements() * static_cast<int64_t>(SizeOf(dtype)));
  };
  ASSIGN_OR_RETURN(made->z_, allocate(sum));
  ASSIGN_OR_RETURN(made->h_, allocate(c.dtype));
  ASSIGN_OR_RETURN(made->y_, allocate(c.dtype));
  for (int64_t copy = 0; copy < c.copies; ++copy) {
    ASSIGN_OR_RETURN(made->weights_.emplace_back(), Filled("w", c.dtype, k, c.columns, weight));
    ASSIGN_OR_RETURN(
        made->products_.emplace_back(),
        OneDnnGemm::Make(c.dtype, {.m = c.tokens, .n = c.columns, .k = k}, form.weights, sum));
    RETURN_IF_ERROR(made->products_.back()->SetWeights(made->weights_.back().as<void>()));
  }
  return made;
}

absl::Status ProductBaseline::RunProduct() {
  return products_[turn_++ % products_.size()]->Run(x_.as<void>(), z_.as<void>());
}

void ProductBaseline::RunRest() {
  const Kernels& kernels = BestKernels();
  if (c_.rest == ProductCase::Rest::kNorm) {
    LoopOf(c_.dtype, sums_in_f32_, kernels.norm_f32, kernels.norm_bf16,
           kernels.norm_bf16_from_f32)({.z = z_.as<void>(),
                                        .r = r_.as<void>(),
                                        .g = vector_.as<void>(),
                                        .h = h_.as<void>(),
                                        .y = y_.as<void>(),
                                        .rows = c_.tokens,
                                        .columns = c_.columns,
                                        .eps = static_cast<float>(ProductCase::kEps)});
    return;
  }
  LoopOf(c_.dtype, sums_in_f32_, kernels.epilogue_f32, kernels.epilogue_bf16,
         kernels.epilogue_bf16_from_f32)({.z = z_.as<void>(),
                                          .b = vector_.as<void>(),
                                          .r = r_.as<void>(),
                                          .y = y_.as<void>(),
                                          .rows = c_.tokens,
                                          .columns = c_.columns,
                                          .stream = 0,
                                          .seed = 1,
                                          .threshold = DropoutThreshold(kEpilogueDropout),
                                          .scale = static_cast<float>(1 / (1 - kEpilogueDropout))});
}

absl::Status ProductBaseline::Run() {
  RETURN_IF_ERROR(RunProduct());
  RETURN_IF_ERROR(MpiAllReduce(sums_in_f32_ ? DType::kF32 : c_.dtype, z_.as<void>(), elements()));
  RunRest();
  return absl::OkStatus();
}

std::vector<float> ProductBaseline::Result() const {
  std::vector<float> result(static_cast<size_t>(elements()));
  for (int64_t i = 0; i < elements(); ++i)
    result[i] = static_cast<float>(LoadElement(c_.dtype, y_.as<void>(), i).real());
  return result;
}

}  // namespace coconet::bench
