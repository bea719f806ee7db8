#pragma once

#include "coconet/language/language.h"

namespace coconet {

// Functions composed of several operations; with an AllReduce if the operand is sliced over a
// dimension that is reduced.

/// sqrt(sum of squares) of the whole tensor.
Tensor Norm(Tensor a);
/// The index, in i32 or i64, of the greatest element along a dimension, which becomes 1: the first
/// of equal elements or of NaNs. The last index if rounding lets no element equal AMax.
Tensor ArgMax(DType dtype, Tensor a, int dim);
// Over the last dimension:
Tensor Softmax(Tensor a);
/// Per row of `logits` [..., V], the negative logarithm of the share of `target` [...], i32, in the
/// row's softmax, in f32: [..., 1]. 0, with a gradient of 0, if the target is not in [0, V).
Tensor CrossEntropy(Tensor logits, Tensor target);
/// (a - mean) / sqrt(variance + epsilon)
Tensor LayerNorm(Tensor a, Tensor epsilon);
/// a / sqrt(mean of squares + epsilon)
Tensor RmsNorm(Tensor a, Tensor epsilon);

}  // namespace coconet
