#pragma once

#include <vector>

#include "coconet/language/language.h"

namespace coconet {

/// Reverse-mode differentiation: the gradient of a scalar with respect to values that it depends
/// on, as operations of the same program. `loss` is a float; if it is Local, the sum of all ranks'
/// losses is differentiated. Each result has its value's dtype, shape and layout: what ranks
/// contribute to the gradient of a Replicated value is summed by one AllReduce. docs/language.md
/// has the gradient of each operation.
///
/// Mistakes, which stick to the program as others do: a loss that is no scalar or no float, a value
/// that the loss does not depend on, an operation without a gradient.
Tensor Grad(Tensor loss, Tensor of);
std::vector<Tensor> Grad(Tensor loss, const std::vector<Tensor>& of);

/// The same value, as a constant for Grad.
Tensor StopGradient(Tensor a);

}  // namespace coconet
