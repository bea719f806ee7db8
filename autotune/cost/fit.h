#pragma once

#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "autotune/cost/rates.h"

namespace coconet {

/// x >= 0 that minimises the sum of the squares of a . x - b (Lawson and Hanson, Solving Least
/// Squares Problems, 1974, algorithm NNLS). `a` by row; all rows as long as x.
std::vector<double> NonNegativeLeastSquares(const std::vector<std::vector<double>>& a,
                                            absl::Span<const double> b);

/// Fits x, from `start` on, so that `residuals(x)` are small: minimises the sum of the losses 2
/// (sqrt(1 + r^2) - 1) of residuals r, which limit the weight of outliers, by Levenberg's and
/// Marquardt's method with numerical derivatives. The residuals' number does not depend on x.
std::vector<double> FitRobustly(
    const std::function<std::vector<double>(absl::Span<const double>)>& residuals,
    std::vector<double> start);

/// A launch and its measured time.
struct MeasuredWork {
  Work work;
  double us = 0;
};

/// Fits launch_us, effort, levels and overlap to kernels. Efforts that no kernel has keep the time
/// of similar ones.
void FitKernels(absl::Span<const MeasuredWork> kernels, Rates& rates);

/// Fits `collectives`, a rate per kind and group.
void FitCollectives(absl::Span<const MeasuredWork> collectives, Rates& rates);

}  // namespace coconet
