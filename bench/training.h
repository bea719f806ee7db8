#ifndef COCONET_BENCH_TRAINING_H_
#define COCONET_BENCH_TRAINING_H_

#include <cstdint>

#include "absl/types/span.h"
#include "bench/kernels.h"
#include "coconet/base/dtype.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {

/// What both sides compute.
inline const WorkloadOptions kAdam;  // the library's defaults
inline constexpr double kLearningRate = 1e-3;

/// Step number t, from 1.
AdamStep AdamStepNumber(int64_t t, int ranks, double learning_rate);

/// Gradients of a rank: between 1/2 and 1, so that rounding cannot reverse a step of Adam.
void FillGradient(DType dtype, void* gradient, int64_t n, int rank);
/// Weights: about 1.
void FillWeights(DType dtype, void* weights, int64_t n);

/// The largest difference of two arrays' elements, in units of the type's roundoff. They are of one
/// length.
double LargestDifference(DType dtype, absl::Span<const double> a, absl::Span<const double> b);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_TRAINING_H_
