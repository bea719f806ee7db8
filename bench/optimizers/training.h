#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "bench/baselines/kernels.h"
#include "coconet/base/dtype.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {

/// The computation of all sides.
inline const WorkloadOptions kAdam;  // the library's defaults
inline constexpr double kLearningRate = 1e-3;

/// The scalars of step number t, counted from 1.
AdamStep AdamStepNumber(int64_t t, int ranks, double learning_rate);

/// Fills in a rank's gradients: between 1/2 and 1, so that rounding cannot flip the sign
/// of Adam's step.
void FillGradient(DType dtype, void* gradient, int64_t n, int rank);
/// Fills in weights of about 1.
void FillWeights(DType dtype, void* weights, int64_t n);
/// Converts elements to f32.
void Widen(DType dtype, const void* from, int64_t n, float* to);

/// The largest difference between elements of two arrays of equal length, in units of
/// the type's roundoff.
double LargestDifference(DType dtype, absl::Span<const double> a, absl::Span<const double> b);

}  // namespace coconet::bench
