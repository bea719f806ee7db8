#pragma once

#include "coconet/language/language.h"
#include "coconet/workloads/workloads.h"

namespace coconet {

// The parts of Adam (Kingma and Ba, ICLR 2015), of tensors in f32.

inline Tensor FirstMoment(const WorkloadOptions& options, Tensor m, Tensor gradient) {
  return options.beta1 * m + (1 - options.beta1) * gradient;
}
inline Tensor SecondMoment(const WorkloadOptions& options, Tensor v, Tensor gradient) {
  return options.beta2 * v + (1 - options.beta2) * (gradient * gradient);
}
/// `scale` times the step's direction, from the moments after step number `step`, f64, from 1 on.
/// Bias corrections and the factor of the first moment are scalars, so that an element costs one
/// division and one square root.
inline Tensor AdamDifference(const WorkloadOptions& options, Tensor scale, Tensor m, Tensor v,
                             Tensor step) {
  const Tensor c1 = CastTo(DType::kF32, 1 / (1 - Pow(options.beta1, step)));
  const Tensor c2 = CastTo(DType::kF32, 1 / (1 - Pow(options.beta2, step)));
  return scale * c1 * m / (Sqrt(v * c2) + options.eps);
}

}  // namespace coconet
